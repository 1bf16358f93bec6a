//! From text to steps. Positions are byte offsets into the text as it was written.

use serde_json::Value as Json;

use super::{
    Comparison, Filter, MAX_INDEX, MAX_NESTED_FILTERS, MAX_SOURCE_BYTES, MAX_STEPS, MAX_UNION, Operand,
    PathProblem, Step,
};

/// A refusal, and the byte it is about.
#[derive(Debug)]
pub(super) struct PathRefusal {
    pub(super) at: usize,
    pub(super) problem: PathProblem,
}

type Parsed<T> = Result<T, PathRefusal>;

/// Parses a path as kubectl and `kubectl wait` write it.
pub(super) fn parse(source: &str) -> Parsed<Vec<Step>> {
    if source.len() > MAX_SOURCE_BYTES {
        let problem =
            PathProblem::TooLarge(format!("{} bytes; {MAX_SOURCE_BYTES} are allowed", source.len()));
        return Err(PathRefusal { at: 0, problem });
    }
    let (start, end) = inside_braces(source)?;
    let mut parser = Parser { source, at: start, end, steps: 0, filters: 0 };
    parser.skip_spaces();
    if parser.at == parser.end {
        return Err(PathRefusal { at: 0, problem: PathProblem::Empty });
    }
    let path = parser.path_from_root()?;
    parser.skip_spaces();
    match parser.peek() {
        None => Ok(path),
        Some(_) => Err(parser.expected("a dot, a bracket or the end of the path")),
    }
}

/// The range of the path inside at most one pair of braces.
fn inside_braces(source: &str) -> Parsed<(usize, usize)> {
    let unsupported =
        |at, what, instead| PathRefusal { at, problem: PathProblem::Unsupported { what, instead } };
    let start = source.len() - source.trim_start().len();
    let end = source.trim_end().len().max(start);
    let trimmed = &source[start..end];
    if !trimmed.starts_with('{') {
        return match brace_outside_quotes(trimmed) {
            Some(at) => {
                Err(unsupported(start + at, "text outside the braces", "write one path: {.status.phase}"))
            }
            None => Ok((start, end)),
        };
    }
    let body = &trimmed[1..];
    for word in ["range", "end"] {
        let rest = body.trim_start().strip_prefix(word);
        if rest.is_some_and(|rest| rest.starts_with(|next: char| next == '}' || next.is_whitespace())) {
            return Err(unsupported(start + 1, "{range}", "use [*] for every element: {.items[*].status}"));
        }
    }
    let Some(close) = brace_outside_quotes(body) else {
        return Err(PathRefusal {
            at: end,
            problem: PathProblem::Expected { expected: "a closing brace", found: "the end".to_owned() },
        });
    };
    let after = &body[close + 1..];
    if body.as_bytes().get(close) == Some(&b'{') {
        return Err(unsupported(
            start + 1 + close,
            "a brace inside the braces",
            "write one path: {.status.phase}",
        ));
    }
    if after.trim_start().starts_with('{') {
        return Err(unsupported(
            start + 2 + close,
            "a second pair of braces",
            "write one condition for each path",
        ));
    }
    if !after.is_empty() {
        return Err(unsupported(
            start + 2 + close,
            "text outside the braces",
            "write one path: {.status.phase}",
        ));
    }
    Ok((start + 1, start + 1 + close))
}

/// The first brace that is neither quoted nor escaped.
fn brace_outside_quotes(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match (character, quote) {
            _ if escaped => escaped = false,
            ('\\', _) => escaped = true,
            (_, Some(open)) if character == open => quote = None,
            ('\'' | '"', None) => quote = Some(character),
            ('{' | '}', None) => return Some(at),
            _ => {}
        }
    }
    None
}

struct Parser<'s> {
    source: &'s str,
    at: usize,
    end: usize,
    steps: usize,
    filters: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.source[self.at..self.end]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    fn skip_spaces(&mut self) {
        while let Some(next) = self.peek().filter(|next| next.is_whitespace()) {
            self.at += next.len_utf8();
        }
    }

    fn expected(&self, expected: &'static str) -> PathRefusal {
        let found = self.peek().map_or_else(|| "the end".to_owned(), |next| format!("{next:?}"));
        PathRefusal { at: self.at, problem: PathProblem::Expected { expected, found } }
    }

    fn unsupported<T>(&self, what: &'static str, instead: &'static str) -> Parsed<T> {
        Err(PathRefusal { at: self.at, problem: PathProblem::Unsupported { what, instead } })
    }

    fn path_from_root(&mut self) -> Parsed<Vec<Step>> {
        if self.peek() == Some('@') || self.peek() == Some('$') {
            self.at += 1;
        } else if !matches!(self.peek(), Some('.' | '[')) {
            // `kubectl wait` reads `status.phase` like `.status.phase`.
            let name = self.name()?;
            let mut steps = vec![self.count(Step::Field(name))?];
            steps.extend(self.path()?);
            return Ok(steps);
        }
        self.path()
    }

    fn count(&mut self, step: Step) -> Parsed<Step> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            let problem = PathProblem::TooLarge(format!("more than {MAX_STEPS} steps"));
            return Err(PathRefusal { at: self.at, problem });
        }
        Ok(step)
    }

    /// The steps up to what cannot be one.
    fn path(&mut self) -> Parsed<Vec<Step>> {
        let mut steps = Vec::new();
        loop {
            if self.take("..") {
                if steps.contains(&Step::Descend) {
                    self.at -= 2;
                    return self.unsupported("a second ..", "name the fields between the two");
                }
                steps.push(self.count(Step::Descend)?);
                if matches!(self.peek(), None | Some('.')) {
                    return Err(self.expected("a name, * or [ after .."));
                }
                if self.peek() != Some('[') {
                    let step = self.named()?;
                    steps.push(self.count(step)?);
                }
            } else if self.take(".") {
                // A lone dot is the value itself; a dot before a bracket adds nothing.
                let at_end = self.peek().is_none_or(|next| next.is_whitespace() || next == ')');
                if self.peek() == Some('[') || (at_end && steps.is_empty()) {
                    continue;
                }
                let step = self.named()?;
                steps.push(self.count(step)?);
            } else if self.take("[") {
                let step = self.bracket()?;
                steps.push(self.count(step)?);
            } else {
                return Ok(steps);
            }
        }
    }

    fn named(&mut self) -> Parsed<Step> {
        if self.take("*") {
            return Ok(Step::Wildcard);
        }
        self.name().map(Step::Field)
    }

    /// A field name; a backslash takes the next character as it is.
    fn name(&mut self) -> Parsed<String> {
        let mut name = String::new();
        while let Some(next) = self.peek() {
            match next {
                '\\' => {
                    self.at += 1;
                    let Some(escaped) = self.peek() else {
                        return Err(self.expected("a character after the backslash"));
                    };
                    name.push(escaped);
                    self.at += escaped.len_utf8();
                }
                next if next.is_whitespace() || ".,[](){}$@'\"*?=!<>&|".contains(next) => break,
                next => {
                    name.push(next);
                    self.at += next.len_utf8();
                }
            }
        }
        if name.is_empty() {
            return Err(self.expected("a field name (write an unusual one in brackets: ['a.b'])"));
        }
        Ok(name)
    }

    /// What is in brackets, the opening one taken.
    fn bracket(&mut self) -> Parsed<Step> {
        self.skip_spaces();
        if self.take("?") {
            return self.filter().map(Step::Filter);
        }
        if self.peek() == Some('(') {
            return self.unsupported("a script", "use [-1] for the last element");
        }
        let mut entries = vec![self.entry()?];
        loop {
            self.skip_spaces();
            if self.take("]") {
                break;
            }
            if !self.take(",") {
                return Err(self.expected("a comma or ]"));
            }
            if entries.len() == MAX_UNION {
                let problem = PathProblem::TooLarge(format!("more than {MAX_UNION} entries in brackets"));
                return Err(PathRefusal { at: self.at, problem });
            }
            entries.push(self.entry()?);
        }
        match (entries.len(), entries.pop()) {
            (1, Some(only)) => Ok(only),
            (_, last) => {
                entries.extend(last);
                Ok(Step::Union(entries))
            }
        }
    }

    fn entry(&mut self) -> Parsed<Step> {
        self.skip_spaces();
        match self.peek() {
            Some('*') => {
                self.at += 1;
                Ok(Step::Wildcard)
            }
            Some('\'' | '"') => self.quoted().map(Step::Field),
            Some(next) if next == ':' || next == '-' || next.is_ascii_digit() => self.index_or_slice(),
            _ => Err(self.expected("a quoted name, an index, a slice, * or ?(…)")),
        }
    }

    fn index_or_slice(&mut self) -> Parsed<Step> {
        let start = self.integer()?;
        if !self.take(":") {
            return start.map(Step::Index).ok_or_else(|| self.expected("an index"));
        }
        let end = self.integer()?;
        let at = self.at;
        let every = if self.take(":") { self.integer()? } else { None };
        match usize::try_from(every.unwrap_or(1)) {
            Ok(every) if every > 0 => Ok(Step::Slice { start, end, every }),
            _ => Err(PathRefusal {
                at,
                problem: PathProblem::Unsupported {
                    what: "a slice that does not go forward",
                    instead: "use a step of 1 or more",
                },
            }),
        }
    }

    fn integer(&mut self) -> Parsed<Option<i64>> {
        self.skip_spaces();
        let sign = usize::from(self.rest().starts_with('-'));
        let digits = self.rest()[sign..].bytes().take_while(u8::is_ascii_digit).count();
        let text = &self.rest()[..sign + digits];
        if text.is_empty() {
            return Ok(None);
        }
        if digits == 0 {
            self.at += sign;
            return Err(self.expected("a digit"));
        }
        match text.parse::<i64>() {
            Ok(number) if number.abs() <= MAX_INDEX => {
                self.at += sign + digits;
                self.skip_spaces();
                Ok(Some(number))
            }
            _ => {
                let problem = PathProblem::TooLarge(format!("indexes up to {MAX_INDEX} are allowed"));
                Err(PathRefusal { at: self.at, problem })
            }
        }
    }

    fn quoted(&mut self) -> Parsed<String> {
        let open = self.at;
        let quote = self.peek();
        self.at += 1;
        let mut text = String::new();
        while let Some(next) = self.peek() {
            self.at += next.len_utf8();
            if Some(next) == quote {
                return Ok(text);
            }
            if next == '\\'
                && let Some(escaped) = self.peek()
            {
                self.at += escaped.len_utf8();
                text.push(escaped);
            } else {
                text.push(next);
            }
        }
        Err(PathRefusal {
            at: open,
            problem: PathProblem::Expected { expected: "a closing quote", found: "the end".to_owned() },
        })
    }

    /// A filter, the question mark taken.
    fn filter(&mut self) -> Parsed<Filter> {
        if !self.take("(") {
            return Err(self.expected("a filter in parentheses: [?(@.type==\"Ready\")]"));
        }
        self.filters += 1;
        if self.filters > MAX_NESTED_FILTERS {
            let problem =
                PathProblem::TooLarge(format!("filters inside filters may be {MAX_NESTED_FILTERS} deep"));
            return Err(PathRefusal { at: self.at, problem });
        }
        let left = self.operand()?;
        self.skip_spaces();
        let comparison = match self.comparison() {
            Some(comparison) => Some((comparison, self.operand()?)),
            None => None,
        };
        self.skip_spaces();
        if self.rest().starts_with("&&") || self.rest().starts_with("||") {
            return self.unsupported("more than one comparison in a filter", "use cel");
        }
        if self.rest().starts_with("=~") {
            return self.unsupported("=~", "use operator: matches");
        }
        if !self.take(")") {
            return Err(self.expected("==, !=, <, <=, >, >= or )"));
        }
        self.skip_spaces();
        if !self.take("]") {
            return Err(self.expected("] after the filter"));
        }
        self.filters -= 1;
        Ok(Filter { left, comparison })
    }

    fn comparison(&mut self) -> Option<Comparison> {
        [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ]
        .into_iter()
        .find_map(|(symbol, comparison)| self.take(symbol).then_some(comparison))
    }

    fn operand(&mut self) -> Parsed<Operand> {
        self.skip_spaces();
        match self.peek() {
            Some('@') => {
                self.at += 1;
                self.path().map(Operand::Element)
            }
            Some('$') => {
                self.at += 1;
                self.path().map(Operand::Root)
            }
            Some('\'' | '"') => self.quoted().map(Json::from).map(Operand::Literal),
            _ => {
                let length =
                    self.rest().find(|next: char| !(next.is_ascii_alphanumeric() || "+-.".contains(next)));
                let word = &self.rest()[..length.unwrap_or(self.rest().len())];
                let literal = match word {
                    "true" => Json::from(true),
                    "false" => Json::from(false),
                    "null" => Json::Null,
                    _ => match word.parse::<serde_json::Number>() {
                        Ok(number) => Json::Number(number),
                        Err(_) => {
                            return Err(self.expected("@.field, a number, a quoted text, true or false"));
                        }
                    },
                };
                self.at += word.len();
                Ok(Operand::Literal(literal))
            }
        }
    }
}
