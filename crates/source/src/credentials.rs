//! Credentials from a Secret: who we are to a server that a user names, and whom to believe there.
//!
//! They are sent to the host and port of the URL alone, and over TLS unless the administrator lists the host with
//! `http://`. Their values are shown nowhere.

use std::{collections::BTreeMap, fmt};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;

use crate::url::Url;

/// Who we are to one server.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The value of the Authorization header.
    authorization: Option<String>,
    /// The certificates to believe instead of the usual ones, as PEM.
    authorities: Option<Vec<u8>>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authorization = self.authorization.as_ref().map(|_| "…");
        let authorities = self.authorities.as_ref().map(Vec::len);
        f.debug_struct("Credentials")
            .field("authorization", &authorization)
            .field("authorities", &authorities)
            .finish()
    }
}

/// What is wrong with a Secret. It names keys, never values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialsError(&'static str);

impl fmt::Display for CredentialsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for CredentialsError {}

/// A `.dockerconfigjson`.
#[derive(Deserialize)]
struct DockerConfig {
    #[serde(default)]
    auths: BTreeMap<String, DockerAuth>,
}

#[derive(Deserialize)]
struct DockerAuth {
    #[serde(default)]
    auth: String,
    #[serde(default)]
    username: String,
    #[serde(default)]
    password: String,
}

impl Credentials {
    /// Reads the data of a Secret, for a server.
    pub fn from_secret(data: &BTreeMap<String, Vec<u8>>, server: &Url) -> Result<Self, CredentialsError> {
        let text = |key: &str| {
            let value = data.get(key)?;
            Some(
                std::str::from_utf8(value)
                    .map(str::trim)
                    .map_err(|_| CredentialsError("a value is not text")),
            )
        };
        let (username, password) = (text("username").transpose()?, text("password").transpose()?);
        let authorization = match (username, password, text("bearerToken").transpose()?) {
            (Some(name), Some(password), None) => Some(basic(name, password)?),
            (None, None, Some(token)) => Some(format!("Bearer {}", header_safe(token)?)),
            (None, None, None) => match text(".dockerconfigjson").transpose()? {
                Some(config) => docker(config, server)?,
                None => None,
            },
            _ => {
                return Err(CredentialsError(
                    "it must have username and password together, or bearerToken alone",
                ));
            }
        };
        let authorities = data.get("ca.crt").cloned();
        if authorization.is_none() && authorities.is_none() && !data.contains_key(".dockerconfigjson") {
            return Err(CredentialsError(
                "it has none of username with password, bearerToken, .dockerconfigjson, ca.crt",
            ));
        }
        Ok(Self { authorization, authorities })
    }

    /// The value of the Authorization header.
    pub(crate) fn authorization(&self) -> Option<&str> {
        self.authorization.as_deref()
    }

    /// The certificates to believe instead of the usual ones.
    pub(crate) fn authorities(&self) -> Option<&[u8]> {
        self.authorities.as_deref()
    }
}

fn basic(name: &str, password: &str) -> Result<String, CredentialsError> {
    if name.contains(':') {
        return Err(CredentialsError("a username has no colon in it"));
    }
    Ok(format!("Basic {}", STANDARD.encode(format!("{name}:{password}"))))
}

/// A value that stays in its header.
fn header_safe(text: &str) -> Result<&str, CredentialsError> {
    if !text.is_empty() && text.bytes().all(|byte| (0x21..0x7f).contains(&byte)) {
        Ok(text)
    } else {
        Err(CredentialsError("bearerToken has characters that a header cannot have"))
    }
}

/// The entry of a docker configuration for a server; none where it has none.
fn docker(config: &str, server: &Url) -> Result<Option<String>, CredentialsError> {
    let config: DockerConfig = serde_json::from_str(config)
        .map_err(|_| CredentialsError(".dockerconfigjson is not a docker configuration"))?;
    let names = |key: &str| {
        let host = key.split_once("://").map_or(key, |(_, rest)| rest);
        let host = host.split('/').next().unwrap_or_default();
        Url::parse(&format!("{}://{host}/", server.scheme.as_str())).is_ok_and(|url| url.same_server(server))
    };
    let Some((_, auth)) = config.auths.iter().find(|(key, _)| names(key)) else { return Ok(None) };
    if auth.auth.is_empty() {
        return basic(&auth.username, &auth.password).map(Some);
    }
    let decoded = STANDARD.decode(auth.auth.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    match decoded.as_deref().and_then(|pair| pair.split_once(':')) {
        Some((name, password)) => basic(name, password).map(Some),
        None => Err(CredentialsError("an auth in .dockerconfigjson is not user:password in base64")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Credentials, CredentialsError> {
        let data = pairs.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())).collect();
        Credentials::from_secret(&data, &Url::parse("https://registry.example:5000/v2/").unwrap())
    }

    #[test]
    fn each_shape_of_a_secret_gives_its_header() {
        let basic = Some("Basic dTpw");
        assert_eq!(read(&[("username", "u"), ("password", "p\n")]).unwrap().authorization(), basic);
        assert_eq!(read(&[("bearerToken", "t0ken")]).unwrap().authorization(), Some("Bearer t0ken"));
        for key in ["registry.example:5000", "https://registry.example:5000/v1/"] {
            let config = format!(r#"{{"auths":{{"other":{{"auth":"eDp5"}},"{key}":{{"auth":"dTpw"}}}}}}"#);
            assert_eq!(read(&[(".dockerconfigjson", &config)]).unwrap().authorization(), basic);
        }
        let config = r#"{"auths":{"registry.example:5000":{"username":"u","password":"p"}}}"#;
        assert_eq!(read(&[(".dockerconfigjson", config)]).unwrap().authorization(), basic);
        assert_eq!(read(&[("ca.crt", "pem")]).unwrap().authorities(), Some(b"pem".as_slice()));
    }

    #[test]
    fn credentials_for_another_server_are_not_taken() {
        for key in ["registry.example", "registry.example:5001", "evil.registry.example:5000"] {
            let config = format!(r#"{{"auths":{{"{key}":{{"auth":"dTpw"}}}}}}"#);
            assert_eq!(read(&[(".dockerconfigjson", &config)]).unwrap().authorization(), None, "{key}");
        }
    }

    #[test]
    fn a_secret_that_is_half_or_hostile_is_refused_without_its_values() {
        let cases: [&[(&str, &str)]; 7] = [
            &[],
            &[("username", "hunter2")],
            &[("username", "u"), ("password", "hunter2"), ("bearerToken", "t")],
            &[("bearerToken", "hunter2\r\nX-Evil: 1")],
            &[("username", "hunter2:x"), ("password", "p")],
            &[(".dockerconfigjson", "hunter2")],
            &[(".dockerconfigjson", r#"{"auths":{"registry.example:5000":{"auth":"hunter2"}}}"#)],
        ];
        for case in cases {
            let error = read(case).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn they_are_not_printed() {
        let shown = format!("{:?}", read(&[("username", "u"), ("password", "hunter2")]).unwrap());
        assert!(!shown.contains("hunter2") && !shown.contains("dTpod"), "{shown}");
    }
}
