//! From text to tokens, each with the character it begins at.

use super::CompileProblem;
use super::parser::CelRefusal;

/// A token and where it begins, in characters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lexeme {
    pub(super) at: usize,
    pub(super) token: CelToken,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum CelToken {
    Name(String),
    /// A name in backticks: only a field can have one.
    EscapedName(String),
    /// A whole number without its sign.
    Int(u64),
    Uint(u64),
    Double(f64),
    String(String),
    Symbol(&'static str),
    End,
}

/// The longest first, so that the first one that fits is right.
const SYMBOLS: [&str; 25] = [
    "&&", "||", "==", "!=", "<=", ">=", "?", ":", ".", ",", "(", ")", "[", "]", "{", "}", "<", ">", "+", "-",
    "*", "/", "%", "!", "=",
];

/// Reads all tokens, the end included.
pub(super) fn read(source: &str) -> Result<Vec<Lexeme>, CelRefusal> {
    let mut lexer = Lexer { characters: source.chars().collect(), at: 0 };
    let mut lexemes = Vec::new();
    loop {
        lexer.skip_blank();
        let at = lexer.at;
        let token = lexer.token()?;
        let end = token == CelToken::End;
        lexemes.push(Lexeme { at, token });
        if end {
            return Ok(lexemes);
        }
    }
}

struct Lexer {
    characters: Vec<char>,
    at: usize,
}

fn refuse<T>(at: usize, message: &str) -> Result<T, CelRefusal> {
    Err(CelRefusal { at: Some(at), problem: CompileProblem::Syntax(message.to_owned()) })
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.characters.get(self.at + ahead).copied()
    }

    fn starts_with(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(ahead, expected)| self.peek(ahead) == Some(expected))
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let taken: String =
            self.characters[self.at..].iter().copied().take_while(|next| wanted(*next)).collect();
        self.at += taken.chars().count();
        taken
    }

    /// Skips white space and comments.
    fn skip_blank(&mut self) {
        loop {
            self.take_while(|next| matches!(next, ' ' | '\t' | '\n' | '\r' | '\u{c}'));
            if !self.starts_with("//") {
                return;
            }
            self.take_while(|next| next != '\n');
        }
    }

    fn token(&mut self) -> Result<CelToken, CelRefusal> {
        let Some(next) = self.peek(0) else {
            return Ok(CelToken::End);
        };
        if next.is_ascii_digit() || (next == '.' && self.peek(1).is_some_and(|digit| digit.is_ascii_digit()))
        {
            return self.number();
        }
        if let Some(prefix) = self.string_prefix() {
            return self.string(prefix);
        }
        if next.is_ascii_alphabetic() || next == '_' {
            return Ok(CelToken::Name(self.take_while(|next| next.is_ascii_alphanumeric() || next == '_')));
        }
        if next == '`' {
            let open = self.at;
            self.at += 1;
            let name = self.take_while(|next| next.is_ascii_alphanumeric() || "_.-/ ".contains(next));
            if name.is_empty() || self.peek(0) != Some('`') {
                return refuse(open, "expected a name of letters, digits, and _ . - / in backticks");
            }
            self.at += 1;
            return Ok(CelToken::EscapedName(name));
        }
        match SYMBOLS.iter().find(|symbol| self.starts_with(symbol)) {
            Some(&"=") => refuse(self.at, "expected ==, found ="),
            Some(symbol) => {
                self.at += symbol.len();
                Ok(CelToken::Symbol(symbol))
            }
            None => refuse(self.at, &format!("expected an expression, found {next:?}")),
        }
    }

    fn number(&mut self) -> Result<CelToken, CelRefusal> {
        let start = self.at;
        let unsigned = |lexer: &mut Lexer| {
            let suffix = matches!(lexer.peek(0), Some('u' | 'U'));
            lexer.at += usize::from(suffix);
            suffix
        };
        let whole = |text: &str, radix: u32, unsigned: bool| match u64::from_str_radix(text, radix) {
            Ok(value) if unsigned => Ok(CelToken::Uint(value)),
            Ok(value) => Ok(CelToken::Int(value)),
            Err(_) => refuse(start, "this number is too large"),
        };
        if self.starts_with("0x") && self.peek(2).is_some_and(|digit| digit.is_ascii_hexdigit()) {
            self.at += 2;
            let digits = self.take_while(|next| next.is_ascii_hexdigit());
            let unsigned = unsigned(self);
            return whole(&digits, 16, unsigned);
        }
        let mut text = self.take_while(|next| next.is_ascii_digit());
        let mut real = false;
        if self.peek(0) == Some('.') && self.peek(1).is_some_and(|digit| digit.is_ascii_digit()) {
            real = true;
            self.at += 1;
            text.push('.');
            text.push_str(&self.take_while(|next| next.is_ascii_digit()));
        }
        if matches!(self.peek(0), Some('e' | 'E')) {
            let sign = usize::from(matches!(self.peek(1), Some('+' | '-')));
            if self.peek(1 + sign).is_some_and(|digit| digit.is_ascii_digit()) {
                real = true;
                text.extend(self.characters[self.at..=self.at + sign].iter());
                self.at += 1 + sign;
                text.push_str(&self.take_while(|next| next.is_ascii_digit()));
            }
        }
        if !real {
            let unsigned = unsigned(self);
            return whole(&text, 10, unsigned);
        }
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(CelToken::Double(value)),
            _ => refuse(start, "this number is too large"),
        }
    }

    /// How many letters are before the quote of a string that begins here.
    fn string_prefix(&self) -> Option<usize> {
        let letters =
            (0..2).take_while(|&ahead| matches!(self.peek(ahead), Some('r' | 'R' | 'b' | 'B'))).count();
        matches!(self.peek(letters), Some('"' | '\'')).then_some(letters)
    }

    fn string(&mut self, prefix: usize) -> Result<CelToken, CelRefusal> {
        let open = self.at;
        let letters: String =
            self.characters[self.at..self.at + prefix].iter().collect::<String>().to_lowercase();
        if letters.contains('b') {
            return Err(CelRefusal { at: Some(open), problem: CompileProblem::Unsupported("byte strings") });
        }
        self.at += prefix;
        let quote = self.peek(0).unwrap_or('"');
        let triple: String = [quote; 3].iter().collect();
        let close = if self.starts_with(&triple) { triple } else { quote.to_string() };
        self.at += close.len();
        let mut text = String::new();
        while !self.starts_with(&close) {
            let Some(next) = self.peek(0) else {
                return refuse(open, "expected a closing quote, found the end");
            };
            if close.len() == 1 && matches!(next, '\n' | '\r') {
                return refuse(open, "expected a closing quote, found the end of the line");
            }
            self.at += 1;
            if next == '\\' && letters.is_empty() {
                text.push(self.escape()?);
            } else {
                text.push(next);
            }
        }
        self.at += close.len();
        Ok(CelToken::String(text))
    }

    /// What the characters after a backslash mean.
    fn escape(&mut self) -> Result<char, CelRefusal> {
        let start = self.at;
        let next = self.peek(0);
        self.at += 1;
        let code = |lexer: &mut Lexer, digits: usize, radix: u32| {
            let text: String = lexer.characters[lexer.at..].iter().take(digits).collect();
            lexer.at += digits;
            let valid = text.chars().count() == digits && text.chars().all(|digit| digit.is_digit(radix));
            u32::from_str_radix(&text, radix).ok().filter(|_| valid).and_then(char::from_u32)
        };
        let character = match next {
            Some('a') => Some('\u{7}'),
            Some('b') => Some('\u{8}'),
            Some('f') => Some('\u{c}'),
            Some('n') => Some('\n'),
            Some('r') => Some('\r'),
            Some('t') => Some('\t'),
            Some('v') => Some('\u{b}'),
            Some('\\' | '?' | '"' | '\'' | '`') => next,
            Some('x' | 'X') => code(self, 2, 16),
            Some('u') => code(self, 4, 16),
            Some('U') => code(self, 8, 16),
            Some('0'..='3') => {
                self.at = start;
                code(self, 3, 8)
            }
            _ => None,
        };
        match character {
            Some(character) => Ok(character),
            None => refuse(
                start - 1,
                "expected an escape such as \\n, \\\\ or \\u00e9 (a raw string r'…' has none)",
            ),
        }
    }
}
