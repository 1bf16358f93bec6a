//! What a registry asks for when it answers 401: the WWW-Authenticate header.

use crate::url::Url;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// A token of this service.
    Bearer {
        /// Where tokens come from.
        realm: Url,
        /// What the registry is called there.
        service: Option<String>,
    },
    /// Something else: credentials, sent at once where there are any.
    Other,
}

impl Challenge {
    /// Reads `Bearer realm="…",service="…",scope="…"`. The scope is not believed: we ask for what we need.
    pub(super) fn parse(header: &str) -> Option<Self> {
        let (scheme, mut rest) = header.trim().split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Some(Self::Other);
        }
        let (mut realm, mut service) = (None, None);
        while let Some((key, value, after)) = parameter(rest) {
            match key.to_ascii_lowercase().as_str() {
                "realm" => realm = Url::parse(&value).ok(),
                "service" => service = Some(value),
                _ => {}
            }
            rest = after;
        }
        Some(Self::Bearer { realm: realm?, service })
    }
}

/// The next `key="value"`, and what follows it.
fn parameter(text: &str) -> Option<(&str, String, &str)> {
    let (key, rest) = text.trim_start_matches([' ', ',']).split_once('=')?;
    let Some(quoted) = rest.strip_prefix('"') else {
        let end = rest.find(',').unwrap_or(rest.len());
        return Some((key.trim(), rest[..end].trim().to_owned(), &rest[end..]));
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((key.trim(), value, &quoted[at + 1..])),
            '\\' => value.push(characters.next()?.1),
            _ => value.push(character),
        }
    }
    None
}

/// The path of a token service with what is asked for.
pub(super) fn query(path: &str, service: Option<&str>, scope: &str) -> String {
    let mut query = path.to_owned();
    let mut separator = if path.contains('?') { '&' } else { '?' };
    for (key, value) in [("service", service), ("scope", Some(scope))] {
        if let Some(value) = value {
            query.push(separator);
            query.push_str(key);
            query.push('=');
            escape(value, &mut query);
            separator = '&';
        }
    }
    query
}

/// Adds a value as a query has it.
fn escape(value: &str, query: &mut String) {
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:/".contains(&byte) {
            query.push(char::from(byte));
        } else {
            query.push('%');
            for digit in [byte >> 4, byte & 15] {
                query.push(
                    char::from_digit(u32::from(digit), 16).map_or('0', |digit| digit.to_ascii_uppercase()),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_services_of_well_known_registries_are_understood() {
        let header = r#"Bearer realm="https://auth.example/token",service="registry, of \"ours\"",scope="repository:a:push""#;
        let realm = Url::parse("https://auth.example/token").unwrap();
        let service = Some("registry, of \"ours\"".to_owned());
        assert_eq!(Challenge::parse(header), Some(Challenge::Bearer { realm: realm.clone(), service }));
        assert_eq!(
            Challenge::parse("bearer realm=https://auth.example/token"),
            Some(Challenge::Bearer { realm, service: None })
        );
        assert_eq!(Challenge::parse(r#"Basic realm="x""#), Some(Challenge::Other));
        for garbage in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer realm=",
            r#"Bearer realm="ftp://x""#,
            r#"Bearer realm="https://x"#,
            "Bearer ,,,",
        ] {
            assert_eq!(Challenge::parse(garbage), None, "{garbage}");
        }
    }

    #[test]
    fn a_service_cannot_add_parameters_of_its_own() {
        assert_eq!(
            query("/token?a=b", Some("x&scope=y z"), "repository:r:pull"),
            "/token?a=b&service=x%26scope%3Dy%20z&scope=repository:r:pull"
        );
    }

    proptest! {
        #[test]
        fn no_header_makes_it_stumble(header in "\\PC{0,200}") {
            let _ = Challenge::parse(&header);
        }
    }
}
