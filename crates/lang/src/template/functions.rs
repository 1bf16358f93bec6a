//! The functions a template may call, and the ones it may not.
//!
//! A function is a name, the types of its parameters and a body that sees the store and its checked arguments.
//! All are pure: whatever would read the environment, the network, files, a random source or the real clock is
//! refused when the template is parsed, with the reason.

use std::fmt;

use super::builtins;
use super::error::Cause;
use super::sprig;
use super::store::Store;
use super::value::Value;

/// The type of a parameter, as Go checks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parameter {
    Any,
    Text,
    Int,
    Bool,
    Float,
    Dict,
    Moment,
}

impl Parameter {
    /// The Go name of the type.
    pub(crate) fn type_name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Text => "string",
            Self::Int => "int",
            Self::Bool => "bool",
            Self::Float => "float64",
            Self::Dict => "map[string]interface {}",
            Self::Moment => "time.Time",
        }
    }
}

/// What a function does with its arguments.
pub(crate) type FunctionBody = for<'s, 'd> fn(&'s mut Store<'d>, &'s [Value<'d>]) -> Result<Value<'d>, Cause>;

/// How the arguments of a function are evaluated.
#[derive(Clone, Copy)]
pub(crate) enum FunctionAction {
    /// All of them, then the body.
    Call(FunctionBody),
    /// Until one is false.
    And,
    /// Until one is true.
    Or,
    /// Like a call, but the literal first argument is the message of the refusal.
    Refuse,
}

/// One function.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) parameters: &'static [Parameter],
    pub(crate) variadic: Option<Parameter>,
    pub(crate) action: FunctionAction,
}

impl Function {
    pub(crate) const fn new(
        name: &'static str,
        parameters: &'static [Parameter],
        body: FunctionBody,
    ) -> Self {
        Self { name, parameters, variadic: None, action: FunctionAction::Call(body) }
    }

    pub(crate) const fn variadic(
        name: &'static str,
        parameters: &'static [Parameter],
        variadic: Parameter,
        body: FunctionBody,
    ) -> Self {
        Self { name, parameters, variadic: Some(variadic), action: FunctionAction::Call(body) }
    }

    pub(crate) const fn special(
        name: &'static str,
        parameters: &'static [Parameter],
        variadic: Option<Parameter>,
        action: FunctionAction,
    ) -> Self {
        Self { name, parameters, variadic, action }
    }

    /// The type of the parameter at this position.
    pub(crate) fn parameter(&self, position: usize) -> Parameter {
        self.parameters.get(position).copied().or(self.variadic).unwrap_or(Parameter::Any)
    }

    /// Whether this many arguments fit.
    pub(crate) fn accepts(&self, count: usize) -> bool {
        if self.variadic.is_some() { count >= self.parameters.len() } else { count == self.parameters.len() }
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

/// Shorthand for the error of a function.
pub(crate) fn failure<T>(function: &'static str, message: impl Into<String>) -> Result<T, Cause> {
    Err(Cause::Function { function, message: message.into() })
}

fn all() -> impl Iterator<Item = &'static Function> {
    std::iter::once(builtins::FUNCTIONS).chain(sprig::TABLES.iter().copied()).flatten()
}

/// The function with this name, or why there is none.
pub(crate) fn find(name: &str) -> Result<&'static Function, String> {
    if let Some(function) = all().find(|function| function.name == name) {
        return Ok(function);
    }
    Err(match refusal(name) {
        Some(reason) => format!("the function {name} is not available: {reason}"),
        None => format!("the function {name} is not defined"),
    })
}

fn refusal(name: &str) -> Option<&'static str> {
    Some(match name {
        "call" => "data holds no functions to call",
        "env" | "expandenv" => "a template must not read the operator's environment",
        "getHostByName" => "a template must not use the network",
        "randAlphaNum" | "randAlpha" | "randAscii" | "randNumeric" | "randBytes" | "randInt" | "shuffle"
        | "uuidv4" | "bcrypt" | "htpasswd" | "derivePassword" => {
            "a random result would differ at every rendering; make the value once and keep it in a Secret"
        }
        "genPrivateKey"
        | "genCA"
        | "genCAWithKey"
        | "genSelfSignedCert"
        | "genSelfSignedCertWithKey"
        | "genSignedCert"
        | "genSignedCertWithKey"
        | "buildCustomCert"
        | "encryptAES"
        | "decryptAES" => "keys and certificates are not made in templates; use a Secret or cert-manager",
        "lookup" => "name the object as a dependency and read it under .Dependencies",
        "include" | "tpl" => "templates cannot be made while rendering; use {{template}}",
        "Files" | "readFile" => "a template must not read files",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, env, fs, path::Path};

    use super::*;

    /// Words behind each other, in lines that people read.
    fn wrapped(words: impl Iterator<Item = String>) -> String {
        let mut lines = vec![String::new()];
        for word in words {
            let line = lines.last_mut().unwrap();
            if line.len() + word.len() > 120 {
                lines.push(word);
            } else {
                line.push_str(if line.is_empty() { "" } else { " " });
                line.push_str(&word);
            }
        }
        lines.join("\n")
    }

    #[test]
    fn every_function_is_documented() {
        const BEGIN: &str = "<!-- functions: written by make docs -->\n";
        const END: &str = "<!-- end of functions -->\n";
        let names: BTreeSet<&str> = all().map(|function| function.name).collect();
        let last = names.last().copied();
        let ending = |name: &str| if Some(name) == last { '.' } else { ',' };
        let written = wrapped(names.iter().map(|name| format!("`{name}`{}", ending(name))));
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/concepts.md");
        let page = fs::read_to_string(&file).unwrap();
        let (before, rest) = page.split_once(BEGIN).unwrap();
        let (_, after) = rest.split_once(END).unwrap();
        let whole = format!("{before}{BEGIN}{written}\n{END}{after}");
        if env::var_os("LINCHPIN_UPDATE").is_some() {
            fs::write(&file, &whole).unwrap();
        }
        let stored = fs::read_to_string(&file).unwrap();
        assert!(stored == whole, "docs/concepts.md is out of date: make docs writes it");
    }
}
