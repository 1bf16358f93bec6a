//! Source text to tokens, as Go's `text/template/parse` splits it.
//!
//! Whitespace trimming (`{{- ` and ` -}}`) and comments are dealt with here, so the parser sees only text and
//! actions. Spaces inside actions are tokens: `a .b` and `a.b` differ.

/// What a token is; the text of the source it covers comes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Text,
    LeftDelimiter,
    RightDelimiter,
    Space,
    Bool,
    Character,
    Number,
    Quoted,
    RawText,
    Field,
    Variable,
    Identifier,
    Dot,
    Nil,
    Pipe,
    LeftParenthesis,
    RightParenthesis,
    Assign,
    Declare,
    Comma,
    Other,
    Block,
    Break,
    Continue,
    Define,
    Else,
    End,
    If,
    Range,
    Template,
    With,
    Eof,
}

/// One token: its kind, where it starts and its text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TemplateToken<'s> {
    pub(crate) kind: TokenKind,
    pub(crate) offset: usize,
    pub(crate) text: &'s str,
}

/// A place the source cannot be split at, and why.
pub(crate) struct LexError {
    pub(crate) offset: usize,
    pub(crate) message: String,
}

/// Splits a whole source; the last token is always the end.
pub(crate) fn tokens(source: &str) -> Result<Vec<TemplateToken<'_>>, LexError> {
    let mut lexer = Lexer { source, position: 0, action: 0, depth: 0, tokens: Vec::new() };
    lexer.text()?;
    lexer.push(TokenKind::Eof, source.len());
    Ok(lexer.tokens)
}

struct Lexer<'s> {
    source: &'s str,
    position: usize,
    action: usize,
    depth: usize,
    tokens: Vec<TemplateToken<'s>>,
}

fn is_space(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\r' | '\n')
}

fn is_alphanumeric(letter: char) -> bool {
    letter == '_' || letter.is_alphanumeric()
}

fn trim_after(rest: &str) -> bool {
    rest.strip_prefix('-').is_some_and(|rest| rest.starts_with(is_space))
}

impl<'s> Lexer<'s> {
    fn rest(&self) -> &'s str {
        &self.source[self.position..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.position += letter.len_utf8();
        Some(letter)
    }

    fn push(&mut self, kind: TokenKind, start: usize) {
        self.tokens.push(TemplateToken {
            kind,
            offset: start,
            text: &self.source[start..self.position.max(start)],
        });
    }

    fn fail<T>(offset: usize, message: impl Into<String>) -> Result<T, LexError> {
        Err(LexError { offset, message: message.into() })
    }

    /// Text up to each action, and the actions, until the source ends.
    fn text(&mut self) -> Result<(), LexError> {
        loop {
            let start = self.position;
            let Some(length) = self.rest().find("{{") else {
                self.position = self.source.len();
                if self.position > start {
                    self.push(TokenKind::Text, start);
                }
                return Ok(());
            };
            let open = start + length;
            let trims = trim_after(&self.source[open + 2..]);
            let text = &self.source[start..open];
            let kept = if trims { text.trim_end_matches(is_space) } else { text };
            if !kept.is_empty() {
                self.tokens.push(TemplateToken { kind: TokenKind::Text, offset: start, text: kept });
            }
            self.action = open;
            self.position = open + 2;
            let marker = if trims { 2 } else { 0 };
            if self.source[self.position + marker..].starts_with("/*") {
                self.position += marker;
                self.comment()?;
                continue;
            }
            self.push(TokenKind::LeftDelimiter, open);
            self.position += marker;
            self.depth = 0;
            self.inside()?;
        }
    }

    /// Whether the action ends here, and whether it trims the text behind it.
    fn at_end(&self) -> Option<bool> {
        let rest = self.rest();
        if rest.starts_with("}}") {
            return Some(false);
        }
        let mut letters = rest.chars();
        (letters.next().is_some_and(is_space) && letters.as_str().starts_with("-}}")).then_some(true)
    }

    fn close(&mut self, trims: bool) {
        self.position += if trims { 4 } else { 2 };
        if trims {
            self.position += self.rest().len() - self.rest().trim_start_matches(is_space).len();
        }
    }

    fn comment(&mut self) -> Result<(), LexError> {
        let Some(length) = self.rest()[2..].find("*/") else {
            return Self::fail(self.action, "this comment is not closed");
        };
        self.position += length + 4;
        let Some(trims) = self.at_end() else {
            return Self::fail(self.action, "a comment must be followed by }} at once");
        };
        self.close(trims);
        Ok(())
    }

    fn inside(&mut self) -> Result<(), LexError> {
        loop {
            let start = self.position;
            if let Some(trims) = self.at_end() {
                if self.depth > 0 {
                    return Self::fail(start, "a left parenthesis is not closed");
                }
                self.tokens.push(TemplateToken {
                    kind: TokenKind::RightDelimiter,
                    offset: start,
                    text: if trims { "-}}" } else { "}}" },
                });
                self.close(trims);
                return Ok(());
            }
            let Some(letter) = self.next() else {
                return Self::fail(self.action, "this action is not closed with }}");
            };
            match letter {
                _ if is_space(letter) => {
                    while self.at_end().is_none() && self.peek().is_some_and(is_space) {
                        self.next();
                    }
                    self.push(TokenKind::Space, start);
                }
                '=' => self.push(TokenKind::Assign, start),
                ':' => {
                    if self.next() != Some('=') {
                        return Self::fail(start, "expected := here");
                    }
                    self.push(TokenKind::Declare, start);
                }
                '|' => self.push(TokenKind::Pipe, start),
                ',' => self.push(TokenKind::Comma, start),
                '"' => self.quoted('"', TokenKind::Quoted, "this quoted text is not closed")?,
                '\'' => self.quoted('\'', TokenKind::Character, "this character is not closed")?,
                '`' => {
                    let Some(length) = self.rest().find('`') else {
                        return Self::fail(start, "this raw text is not closed");
                    };
                    self.position += length + 1;
                    self.push(TokenKind::RawText, start);
                }
                '$' => self.name(TokenKind::Variable, start)?,
                '.' if !self.peek().is_some_and(|next| next.is_ascii_digit()) => {
                    self.name(TokenKind::Field, start)?;
                }
                '.' | '+' | '-' | '0'..='9' => {
                    self.position = start;
                    self.number(start)?;
                }
                '(' => {
                    self.depth += 1;
                    self.push(TokenKind::LeftParenthesis, start);
                }
                ')' => {
                    if self.depth == 0 {
                        return Self::fail(start, "this right parenthesis closes nothing");
                    }
                    self.depth -= 1;
                    self.push(TokenKind::RightParenthesis, start);
                }
                _ if is_alphanumeric(letter) => self.word(start)?,
                '!'..='~' => self.push(TokenKind::Other, start),
                _ => return Self::fail(start, format!("the character {letter:?} is not expected here")),
            }
        }
    }

    fn quoted(&mut self, quote: char, kind: TokenKind, message: &str) -> Result<(), LexError> {
        let start = self.position - 1;
        loop {
            match self.next() {
                Some('\\') if self.peek().is_some_and(|letter| letter != '\n') => {
                    self.next();
                }
                Some(letter) if letter == quote => break,
                Some(letter) if letter != '\\' && letter != '\n' => {}
                _ => return Self::fail(start, message),
            }
        }
        self.push(kind, start);
        Ok(())
    }

    fn terminated(&self) -> bool {
        match self.peek() {
            None | Some(' ' | '\t' | '\r' | '\n' | '.' | ',' | '|' | ':' | ')' | '(') => true,
            Some(_) => self.rest().starts_with("}}"),
        }
    }

    fn skip_name(&mut self) -> Result<(), LexError> {
        while self.peek().is_some_and(is_alphanumeric) {
            self.next();
        }
        match self.peek() {
            Some(letter) if !self.terminated() => {
                Self::fail(self.position, format!("the character {letter:?} cannot follow a name"))
            }
            _ => Ok(()),
        }
    }

    fn name(&mut self, kind: TokenKind, start: usize) -> Result<(), LexError> {
        if self.terminated() {
            self.push(if kind == TokenKind::Field { TokenKind::Dot } else { kind }, start);
            return Ok(());
        }
        self.skip_name()?;
        self.push(kind, start);
        Ok(())
    }

    fn word(&mut self, start: usize) -> Result<(), LexError> {
        self.skip_name()?;
        let kind = match &self.source[start..self.position] {
            "block" => TokenKind::Block,
            "break" => TokenKind::Break,
            "continue" => TokenKind::Continue,
            "define" => TokenKind::Define,
            "else" => TokenKind::Else,
            "end" => TokenKind::End,
            "if" => TokenKind::If,
            "range" => TokenKind::Range,
            "nil" => TokenKind::Nil,
            "template" => TokenKind::Template,
            "with" => TokenKind::With,
            "true" | "false" => TokenKind::Bool,
            _ => TokenKind::Identifier,
        };
        self.push(kind, start);
        Ok(())
    }

    fn accept(&mut self, letters: &str) -> bool {
        let found = self.peek().is_some_and(|letter| letters.contains(letter));
        if found {
            self.next();
        }
        found
    }

    fn number(&mut self, start: usize) -> Result<(), LexError> {
        self.accept("+-");
        let (mut digits, mut exponent) = ("0123456789_", "eE");
        if self.accept("0") {
            if self.accept("xX") {
                (digits, exponent) = ("0123456789abcdefABCDEF_", "pP");
            } else if self.accept("oO") {
                (digits, exponent) = ("01234567_", "");
            } else if self.accept("bB") {
                (digits, exponent) = ("01_", "");
            }
        }
        while self.accept(digits) {}
        if self.accept(".") {
            while self.accept(digits) {}
        }
        if self.accept(exponent) {
            self.accept("+-");
            while self.accept("0123456789_") {}
        }
        if self.peek() == Some('i') {
            return Self::fail(start, "complex numbers are not supported");
        }
        if self.peek().is_some_and(|letter| is_alphanumeric(letter) || letter == '+' || letter == '-') {
            return Self::fail(start, "this is not a number");
        }
        self.push(TokenKind::Number, start);
        Ok(())
    }
}
