// SPDX-License-Identifier: GPL-3.0-or-later
//! The results of one experiment.
use serde::Serialize;
use serde_json::{Value, json};

use weir_report::{Claim, ClaimVerdict};

/// Results of one experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The experiment's name: `regehr2005/fig1`.
    pub name: String,
    /// True if the results come from a simulation of a described system, false if they were
    /// measured.
    pub simulated: bool,
    /// The claims in display order.
    pub claims: Vec<Claim>,
    /// The measurements on which the claims are based.
    pub series: Vec<Series>,
}

/// The points of one curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// The name of the curve, unique within its report.
    pub id: String,
    /// The meaning and the unit of x.
    pub x: String,
    /// The meaning and the unit of y.
    pub y: String,
    /// Points in ascending order of x.
    pub points: Vec<(f64, f64)>,
}

impl Report {
    /// Returns whether all claims are met, except those that are known to be missed.
    #[must_use]
    pub fn is_met(&self) -> bool {
        let mut verdicts = self.claims.iter().map(Claim::verdict);
        verdicts.all(|verdict| verdict != ClaimVerdict::NotMet)
    }

    /// Returns the JSON form
    /// `{"written_by":"weir","name":…,"simulated":…,"claims":[{"id":…,"unit":…,"paper":…,"goal":{"at_most":…},"measured":…,"met":…}],"series":[…]}`.
    /// A value is null if the paper does not state it, or if it is not finite. A claim that is
    /// known to be missed has the key `today` beside its goal.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let claims: Vec<Value> = self
            .claims
            .iter()
            .map(|claim| {
                let mut json = json!({
                    "id": claim.id,
                    "unit": claim.unit,
                    "paper": claim.paper,
                    "goal": claim.goal,
                    "measured": claim.measured,
                    "met": claim.is_met(),
                });
                if let Some(today) = claim.today {
                    json["today"] = json!(today);
                }
                json
            })
            .collect();
        json!({ "written_by": "weir", "name": self.name, "simulated": self.simulated, "claims": claims, "series": self.series })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_report::Goal;

    fn claim(measured: f64) -> Claim {
        Claim {
            id: "c.strict".to_owned(),
            what: "overhead".to_owned(),
            unit: "points".to_owned(),
            paper: None,
            goal: Goal::AtMost(4.6),
            today: None,
            measured,
        }
    }

    #[test]
    fn json_has_the_documented_shape() {
        let report = Report {
            name: "regehr2005/fig1".to_owned(),
            simulated: false,
            claims: vec![claim(5.0)],
            series: vec![Series {
                id: "c.strict".to_owned(),
                x: "offered, kHz".to_owned(),
                y: "lost, %".to_owned(),
                points: vec![(0.26, 1.5)],
            }],
        };
        assert_eq!(
            report.to_json().to_string(),
            r#"{"written_by":"weir","name":"regehr2005/fig1","simulated":false,"claims":[{"id":"c.strict","unit":"points","paper":null,"goal":{"at_most":4.6},"measured":5.0,"met":false}],"series":[{"id":"c.strict","x":"offered, kHz","y":"lost, %","points":[[0.26,1.5]]}]}"#
        );
    }

    #[test]
    fn one_unmet_claim_is_enough() {
        let mut report = Report {
            name: String::new(),
            simulated: false,
            claims: vec![claim(4.0), claim(4.6)],
            series: Vec::new(),
        };
        assert!(report.is_met());
        report.claims.push(claim(4.7));
        assert!(!report.is_met());
    }
}
