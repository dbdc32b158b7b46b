// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shows an error in a file with very long lines: only the text around each label is printed.
use std::error::Error;
use std::fmt;

use miette::{
    Diagnostic, LabeledSpan, MietteError, MietteSpanContents, Severity, SourceCode, SourceSpan,
    SpanContents,
};

/// The number of bytes shown before a label.
const BEFORE: usize = 40;
/// The number of bytes shown from the begin of a label.
const AFTER: usize = 40;

/// A diagnostic that prints excerpts instead of whole lines of its source.
#[derive(Debug)]
pub(super) struct ExcerptDiagnostic<'a> {
    whole: &'a dyn Diagnostic,
    source: Option<Excerpts<'a>>,
    related: Vec<ExcerptDiagnostic<'a>>,
}

impl<'a> ExcerptDiagnostic<'a> {
    pub fn new(whole: &'a dyn Diagnostic) -> Self {
        Self {
            whole,
            source: whole.source_code().map(Excerpts),
            related: whole
                .related()
                .into_iter()
                .flatten()
                .map(Self::new)
                .collect(),
        }
    }
}

impl fmt::Display for ExcerptDiagnostic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.whole, f)
    }
}

impl Error for ExcerptDiagnostic<'_> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.whole.source()
    }
}

impl Diagnostic for ExcerptDiagnostic<'_> {
    fn severity(&self) -> Option<Severity> {
        self.whole.severity()
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.whole.help()
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let shorten = |label: LabeledSpan| {
            let length = label.len().min(AFTER);
            LabeledSpan::new(label.label().map(str::to_owned), label.offset(), length)
        };
        Some(Box::new(self.whole.labels()?.map(shorten)))
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        let related = self.related.iter();
        Some(Box::new(related.map(|one| one as &dyn Diagnostic)))
    }
}

/// A source that returns only the text around each label.
struct Excerpts<'a>(&'a dyn SourceCode);

impl fmt::Debug for Excerpts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Excerpts")
    }
}

impl SourceCode for Excerpts<'_> {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        lines_before: usize,
        lines_after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let whole = self.0.read_span(span, lines_before, lines_after)?;
        let data = whole.data();
        let label = span.offset().saturating_sub(whole.span().offset());
        let is_break = |&byte: &u8| byte == b'\n';
        let (above, line) = data.split_at_checked(label).unwrap_or((data, &[]));
        let line_begin = above.iter().rposition(is_break);
        let line_begin = line_begin.map_or(0, |at| at + 1);
        let line_end = line.iter().position(is_break);
        let line_end = line_end.map_or(data.len(), |at| label + at);
        // A multi-byte character must not be cut.
        let is_whole = |&at: &usize| data.get(at).is_none_or(|byte| byte & 0xc0 != 0x80);
        let begin = line_begin.max(label.saturating_sub(BEFORE));
        let begin = (begin..label).find(is_whole).unwrap_or(label);
        let end = line_end.min(label + span.len().max(AFTER));
        let end = (end..line_end).find(is_whole).unwrap_or(line_end);
        let breaks = above[..line_begin].iter().filter(|byte| is_break(byte));
        let column = begin - line_begin + if line_begin == 0 { whole.column() } else { 0 };
        let at = SourceSpan::new((whole.span().offset() + begin).into(), end - begin);
        let (line, data) = (whole.line() + breaks.count(), &data[begin..end]);
        Ok(Box::new(match whole.name() {
            Some(name) => MietteSpanContents::new_named(name.to_owned(), data, at, line, column, 1),
            None => MietteSpanContents::new(data, at, line, column, 1),
        }))
    }
}
