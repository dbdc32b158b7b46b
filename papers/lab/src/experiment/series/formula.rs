// SPDX-License-Identifier: GPL-3.0-or-later
//! Formulas in experiment files, in the language of the crate evalexpr, and templates, which are
//! texts that contain formulas.
use std::collections::BTreeMap;
use std::fmt::Write;

use evalexpr::{Context, EvalexprError, EvalexprResult, Node, Value, build_operator_tree};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use weir_arrivals::Pattern;

/// The name that stands for the point in formulas.
pub(in crate::experiment) const X: &str = "x";

/// The value of a name in a formula.
pub(in crate::experiment) type Number = Value;

/// Makes a number for formulas. All numbers are floating-point, so that no division is an integer
/// division.
pub(in crate::experiment) fn number(value: f64) -> Number {
    Value::Float(value)
}

/// A source of values for names.
pub(in crate::experiment) trait Names {
    /// The value of a name. `None` if the name is unknown.
    fn find(&self, name: &str) -> Option<&Number>;
}

impl Names for BTreeMap<String, Number> {
    fn find(&self, name: &str) -> Option<&Number> {
        self.get(name)
    }
}

/// A formula with valid syntax. Its names may be unknown.
#[derive(Debug, Clone)]
pub(in crate::experiment) struct Formula(Node);

impl Formula {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = |error| format!("`{text}` is no formula: {error}");
        let tree = build_operator_tree(text).map_err(wrong)?;
        // Evaluate the formula once, because evalexpr reports some errors only then.
        let names = Anything(number(1.0));
        match tree.eval_with_context(&Lookup(&names)).map_err(wrong)? {
            Value::Float(_) | Value::Int(_) | Value::Boolean(_) => Ok(Self(tree)),
            other => Err(format!("`{text}` is `{other}` and no number")),
        }
    }

    /// The names in the formula.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter_variable_identifiers()
    }

    /// The same formula with its names replaced.
    pub fn renamed(&self, rename: impl Fn(&str) -> String) -> Self {
        let mut tree = self.0.clone();
        for name in tree.iter_variable_identifiers_mut() {
            *name = rename(name);
        }
        Self(tree)
    }

    /// Evaluates the formula.
    pub fn evaluate(&self, names: &impl Names) -> Result<f64, String> {
        self.0
            .eval_number_with_context(&Lookup(names))
            .map_err(|error| what_is_wrong(&error))
    }

    /// Evaluates a formula over x alone at a point.
    pub fn at(&self, x: f64) -> Result<f64, String> {
        if let Some(name) = self.names().find(|&name| name != X) {
            return Err(format!(
                "a formula here can be about x, and not about `{name}`"
            ));
        }
        self.evaluate(&BTreeMap::from([(X.to_owned(), number(x))]))
    }

    /// Evaluates a condition.
    pub fn holds(&self, names: &impl Names) -> Result<bool, String> {
        self.0
            .eval_boolean_with_context(&Lookup(names))
            .map_err(|error| what_is_wrong(&error))
    }
}

fn what_is_wrong(error: &EvalexprError) -> String {
    match error {
        EvalexprError::VariableIdentifierNotFound(name) => {
            format!("`{name}` was not measured at every point")
        }
        other => other.to_string(),
    }
}

impl<'de> Deserialize<'de> for Formula {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// Names that all have the same value.
struct Anything(Number);

impl Names for Anything {
    fn find(&self, _: &str) -> Option<&Number> {
        Some(&self.0)
    }
}

/// Makes names usable by evalexpr.
struct Lookup<'a, N>(&'a N);

impl<N: Names> Context for Lookup<'_, N> {
    fn get_value(&self, name: &str) -> Option<&Value> {
        self.0.find(name)
    }

    fn call_function(&self, name: &str, _: &Value) -> EvalexprResult<Value> {
        Err(EvalexprError::FunctionIdentifierNotFound(name.to_owned()))
    }

    fn are_builtin_functions_disabled(&self) -> bool {
        false
    }

    fn set_builtin_functions_disabled(&mut self, _: bool) -> EvalexprResult<()> {
        Err(EvalexprError::ContextNotMutable)
    }
}

/// A text with formulas in braces, as in `{2 * x}Hz`. In experiment files the only name is x.
#[derive(Debug, Clone, Default)]
pub(in crate::experiment) struct Template {
    /// The texts around the formulas. A formula follows each text but the last.
    texts: Vec<String>,
    formulas: Vec<Formula>,
}

impl Template {
    fn parse(text: &str) -> Result<Self, String> {
        let template = Self::over_names(text)?;
        for name in template.formulas.iter().flat_map(Formula::names) {
            if name != X {
                return Err(format!("`{text}` can be about x, and not about `{name}`"));
            }
        }
        Ok(template)
    }

    /// Parses a template whose formulas may contain any names.
    pub fn over_names(text: &str) -> Result<Self, String> {
        let mut template = Self {
            texts: Vec::new(),
            formulas: Vec::new(),
        };
        let mut rest = text;
        while let Some((before, formula)) = rest.split_once('{') {
            let (formula, after) = formula
                .split_once('}')
                .ok_or_else(|| format!("`{text}` lacks a closing brace"))?;
            let formula = Formula::parse(formula)?;
            template.texts.push(before.to_owned());
            template.formulas.push(formula);
            rest = after;
        }
        template.texts.push(rest.to_owned());
        Ok(template)
    }

    /// Whether any formula contains x.
    pub fn depends_on_x(&self) -> bool {
        !self.formulas.is_empty()
    }

    /// The pattern of arrivals at a point. `None` at x = 0 if the text depends on x.
    pub fn pattern(&self, x: f64, clock_hz: u64) -> Result<Option<Pattern>, String> {
        if x == 0.0 && self.depends_on_x() {
            return Ok(None);
        }
        let pattern = Pattern::parse(&self.at(x)?, clock_hz);
        pattern.map(Some).map_err(|error| error.to_string())
    }

    /// The text at a point.
    pub fn at(&self, x: f64) -> Result<String, String> {
        // The name in each formula is x, so it is safe to give all names this value.
        self.with(&Anything(number(x)))
    }

    /// The text with its formulas evaluated. Numbers have at most nine decimals.
    pub fn with(&self, names: &impl Names) -> Result<String, String> {
        let mut text = String::new();
        let mut formulas = self.formulas.iter();
        for part in &self.texts {
            text.push_str(part);
            if let Some(formula) = formulas.next() {
                let decimals = format!("{:.9}", formula.evaluate(names)?);
                let short = decimals.trim_end_matches('0').trim_end_matches('.');
                // Writing to a string cannot fail.
                let _ = write!(text, "{short}");
            }
        }
        Ok(text)
    }
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct One(Number);

    impl Names for One {
        fn find(&self, name: &str) -> Option<&Number> {
            (name == "linux.cpu.response.mean").then_some(&self.0)
        }
    }

    #[test]
    fn a_formula_knows_names_with_points_and_divides_as_one_expects() {
        let names = One(number(3.0));
        let value = |text| Formula::parse(text).unwrap().evaluate(&names);
        assert_eq!(value("linux.cpu.response.mean / 2"), Ok(1.5));
        assert_eq!(
            value("100 * (1 - 1 / (1 + linux.cpu.response.mean))"),
            Ok(75.0)
        );
        assert_eq!(value("math::abs(1 - linux.cpu.response.mean)"), Ok(2.0));
        assert_eq!(value("max(linux.cpu.response.mean, 7)"), Ok(7.0));
        let condition = Formula::parse("linux.cpu.response.mean >= 3").unwrap();
        assert_eq!(condition.holds(&names), Ok(true));
    }

    #[test]
    fn what_is_no_formula_is_refused_with_a_reason() {
        for text in ["1 +", "1 +* 2", "(1", "sinus(1)", "1 && 2", ""] {
            let error = Formula::parse(text).unwrap_err();
            assert!(
                error.contains("no formula") || error.contains("no number"),
                "{error}"
            );
        }
        assert_eq!(Formula::parse("2 * x").unwrap().at(3.0), Ok(6.0));
        assert!(
            Formula::parse("2 * y")
                .unwrap()
                .at(3.0)
                .unwrap_err()
                .contains('y')
        );
        let unknown = Formula::parse("linux.cpu.ran").unwrap();
        let error = unknown.evaluate(&One(number(1.0))).unwrap_err();
        assert!(error.contains("linux.cpu.ran"), "{error}");
        assert!(Template::parse("{x").unwrap_err().contains("brace"));
        assert!(Template::parse("{y}Hz").unwrap_err().contains('y'));
    }

    #[test]
    fn a_formula_can_be_about_other_names() {
        let about_linux = Formula::parse("2 * first.VARIANT.cpu.ran + x")
            .unwrap()
            .renamed(|name| name.replace("VARIANT", "linux"));
        let names: Vec<&str> = about_linux.names().collect();
        assert_eq!(names, ["first.linux.cpu.ran", "x"]);
    }

    #[test]
    fn a_template_is_a_text_at_each_point() {
        let at = |text, x| Template::parse(text).unwrap().at(x).unwrap();
        assert_eq!(at("{x}Hz", 5000.0), "5000Hz");
        assert_eq!(
            at("mmpp:100kHz:gap={5000 / x - 0.05}s", 15000.0),
            "mmpp:100kHz:gap=0.283333333s"
        );
        assert_eq!(at("5Hz", 1.0), "5Hz");
        assert!(!Template::parse("5Hz").unwrap().depends_on_x());
    }
}
