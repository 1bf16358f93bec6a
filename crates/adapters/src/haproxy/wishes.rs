//! What a Service asks of HAProxy: its backend, the port of its pods, and words for `add server`.
//!
//! Annotations are written by tenants and end up in commands to a socket with all rights, so nothing of them is passed on
//! that is not known: the backend begins with the Service's namespace, keywords are from a fixed list, and every value is
//! made of a few characters.

use linchpin_consist::Trouble;
use linchpin_words::{
    keys::consist::{HAPROXY_BACKEND, HAPROXY_PORT, HAPROXY_SERVER},
    text::quote,
};
use serde_json::Value;

/// Words without a value.
const FLAGS: [&str; 9] = [
    "check",
    "backup",
    "send-proxy",
    "send-proxy-v2",
    "check-send-proxy",
    "ssl",
    "check-ssl",
    "tfo",
    "allow-0rtt",
];

/// Words with a value behind them. None names a file, another address or another identity.
const VALUES: [&str; 23] = [
    "weight",
    "inter",
    "fastinter",
    "downinter",
    "rise",
    "fall",
    "port",
    "maxconn",
    "minconn",
    "maxqueue",
    "slowstart",
    "pool-low-conn",
    "pool-max-conn",
    "pool-purge-delay",
    "proto",
    "check-proto",
    "alpn",
    "verify",
    "observe",
    "error-limit",
    "on-error",
    "on-marked-down",
    "on-marked-up",
];

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wishes {
    pub(super) backend: String,
    pub(super) port: PodPort,
    /// Words for `add server` behind the address.
    pub(super) words: String,
    pub(super) checks: bool,
}

/// A port of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PodPort {
    /// The same of every pod.
    Number(u16),
    /// Each pod's own port of this name.
    Named(String),
}

impl Wishes {
    /// Reads a Service.
    pub(super) fn of(service: &Value, namespace: &str, name: &str) -> Result<Self, Trouble> {
        let annotation = |key: &str| {
            let annotations = service.pointer("/metadata/annotations").and_then(Value::as_object);
            annotations.and_then(|map| map.get(key)).and_then(Value::as_str).map(str::trim)
        };
        let wrong = |key: &str, text: &str, why: &str| {
            Trouble(format!("annotation {key} of Service {namespace}/{name}: {} {why}", quote(text)))
        };
        let backend =
            annotation(HAPROXY_BACKEND).map_or_else(|| format!("{namespace}_{name}"), str::to_owned);
        let begins = format!("{namespace}_");
        if !backend.starts_with(&begins) || backend.len() == begins.len() || !backend.bytes().all(in_a_name) {
            let why = format!("must be {begins} and letters, digits, dots, dashes, underscores");
            return Err(wrong(HAPROXY_BACKEND, &backend, &why));
        }
        let port = port(service, annotation(HAPROXY_PORT))
            .map_err(|why| wrong(HAPROXY_PORT, annotation(HAPROXY_PORT).unwrap_or_default(), why))?;
        let asked = annotation(HAPROXY_SERVER).unwrap_or_default();
        let (words, checks) = words(asked).map_err(|why| wrong(HAPROXY_SERVER, asked, &why))?;
        Ok(Self { backend, port, words, checks })
    }

    /// The port of a pod; none where it has no port of that name.
    pub(super) fn port_of(&self, pod: &Value) -> Option<u16> {
        let name = match &self.port {
            PodPort::Number(port) => return Some(*port),
            PodPort::Named(name) => name,
        };
        let containers = pod.pointer("/spec/containers").and_then(Value::as_array)?;
        let mut ports =
            containers.iter().filter_map(|container| container.get("ports")?.as_array()).flatten();
        let port = ports.find(|port| port.get("name").and_then(Value::as_str) == Some(name))?;
        number(port.get("containerPort")?)
    }
}

fn number(value: &Value) -> Option<u16> {
    value.as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port != 0)
}

/// What may be in the name of a backend.
fn in_a_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'-')
}

/// What may be in a value.
fn in_a_value(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'/' | b'-')
}

/// The port of the pods: that of the Service's first port, or of the one that is asked for.
fn port(service: &Value, asked: Option<&str>) -> Result<PodPort, &'static str> {
    let ports: Vec<&Value> =
        service.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten().collect();
    let by_itself = asked.and_then(|asked| asked.parse::<u16>().ok()).filter(|port| *port != 0);
    let chosen = match asked {
        None => ports.first(),
        Some(asked) => ports.iter().find(|port| {
            port.get("name").and_then(Value::as_str) == Some(asked)
                || port.get("port").and_then(number).is_some_and(|number| Some(number) == by_itself)
        }),
    };
    let Some(chosen) = chosen else {
        // A number that no port of the Service has is the pods' own.
        return by_itself.map(PodPort::Number).ok_or(match asked {
            None => "is missing, and the Service has no port",
            Some(_) => "is neither a port of the Service nor a number",
        });
    };
    match chosen.get("targetPort") {
        Some(Value::String(name)) => match name.parse::<u16>().ok().filter(|port| *port != 0) {
            Some(port) => Ok(PodPort::Number(port)),
            None => Ok(PodPort::Named(name.clone())),
        },
        Some(value) if number(value).is_some_and(|port| port != 0) => {
            Ok(PodPort::Number(number(value).unwrap_or_default()))
        }
        _ => chosen.get("port").and_then(number).map(PodPort::Number).ok_or("has no number"),
    }
}

/// Words for `add server`, each known, and whether HAProxy is to check.
fn words(asked: &str) -> Result<(String, bool), String> {
    let mut kept = Vec::new();
    let mut weighed = false;
    let mut rest = asked.split_ascii_whitespace();
    while let Some(word) = rest.next() {
        if FLAGS.contains(&word) {
            kept.push(word);
            continue;
        }
        if !VALUES.contains(&word) {
            return Err(format!(
                "has {}, which is none of {}, {}",
                quote(word),
                FLAGS.join(", "),
                VALUES.join(", ")
            ));
        }
        let value = rest.next().filter(|value| value.bytes().all(in_a_value));
        let value =
            value.ok_or_else(|| format!("has {word} without a value of letters, digits and ._:/-"))?;
        weighed |= word == "weight";
        kept.extend([word, value]);
    }
    if !weighed {
        kept.splice(0..0, ["weight", "100"]);
    }
    Ok((kept.join(" "), kept.contains(&"check")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn service(annotations: &Value) -> Value {
        json!({"metadata": {"annotations": annotations},
            "spec": {"ports": [{"name": "http", "port": 80, "targetPort": 8080}, {"name": "admin", "port": 81, "targetPort": "adm"},
                {"port": 82}]}})
    }

    fn wishes(annotations: &Value) -> Result<Wishes, Trouble> {
        Wishes::of(&service(annotations), "shop", "web")
    }

    #[test]
    fn without_annotations_it_is_the_backend_of_the_service_and_its_first_port() {
        let wishes = wishes(&json!({})).unwrap();
        assert_eq!((wishes.backend.as_str(), wishes.words.as_str()), ("shop_web", "weight 100"));
        assert_eq!((wishes.port, wishes.checks), (PodPort::Number(8080), false));
    }

    #[test]
    fn a_port_is_named_by_name_or_number_and_looked_up_in_the_pod() {
        let port = |asked: &str| wishes(&json!({HAPROXY_PORT: asked})).map(|wishes| wishes.port);
        assert_eq!(port("http"), Ok(PodPort::Number(8080)));
        assert_eq!(port("80"), Ok(PodPort::Number(8080)));
        assert_eq!(port("82"), Ok(PodPort::Number(82)));
        assert_eq!(port("9000"), Ok(PodPort::Number(9000)));
        assert!(port("nope").is_err() && port("0").is_err() && port("99999").is_err());
        let named = wishes(&json!({HAPROXY_PORT: "admin"})).unwrap();
        assert_eq!(named.port, PodPort::Named("adm".to_owned()));
        let pod = json!({"spec": {"containers": [{"ports": [{"name": "x", "containerPort": 1}]},
            {"ports": [{"name": "adm", "containerPort": 9090}]}]}});
        assert_eq!(named.port_of(&pod), Some(9090));
        assert_eq!(named.port_of(&json!({})), None);
        assert!(Wishes::of(&json!({}), "shop", "web").is_err());
    }

    #[test]
    fn a_backend_of_another_namespace_cannot_be_named() {
        for name in ["other_web", "shop", "shop_", "shop_a b", "shop_a/b", "shop_a;show", "shop_a\nshow", ""]
        {
            assert!(wishes(&json!({HAPROXY_BACKEND: name})).is_err(), "{name}");
        }
        assert_eq!(
            wishes(&json!({HAPROXY_BACKEND: "shop_front-end.1"})).unwrap().backend,
            "shop_front-end.1"
        );
    }

    #[test]
    fn words_for_the_server_are_from_a_list_and_have_harmless_values() {
        let asked = |text: &str| wishes(&json!({HAPROXY_SERVER: text}));
        let good = asked("check inter 2s rise 1 weight 50").unwrap();
        assert_eq!((good.words.as_str(), good.checks), ("check inter 2s rise 1 weight 50", true));
        assert_eq!(asked("maxconn 10").unwrap().words, "weight 100 maxconn 10");
        for wrong in [
            "crt /etc/ssl/key.pem",
            "ca-file x",
            "addr 169.254.169.254",
            "source 10.0.0.1",
            "inter",
            "inter 2s;show",
            "inter $(id)",
            "id 7",
            "disabled",
            "CHECK",
        ] {
            assert!(asked(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_annotation_leaves_its_command(text in ".{0,60}", key in 0..3_usize) {
            if let Ok(wishes) = wishes(&json!({[HAPROXY_BACKEND, HAPROXY_PORT, HAPROXY_SERVER][key]: text})) {
                let command = format!("add server {}/web-1 10.0.0.7:80 {}", wishes.backend, wishes.words);
                prop_assert!(command.bytes().all(|byte| in_a_value(byte) || byte == b' '), "{command}");
                prop_assert!(wishes.backend.starts_with("shop_"));
            }
        }
    }
}
