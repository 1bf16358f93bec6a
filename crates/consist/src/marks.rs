//! The marks that an employment leaves on objects, with the document's literals: the clean finalizer on the employer, the
//! entry and the protection finalizer on a pod, and the names that are recorded on the employer.
//!
//! They are the whole memory: nothing else survives a crash. Other programs write them too, so reading them never fails
//! the caller: what cannot be read is [`PodEntries::Unreadable`], left as it is, and satisfies nothing.

use std::collections::{BTreeMap, BTreeSet};

use linchpin_words::keys::consist as keys;
use md5::{Digest, Md5};
use serde::Serialize;
use serde_json::Value;

use crate::options::FinalizerRule;

/// The longest part behind the slash of a finalizer that Kubernetes takes.
const FINALIZER_NAME: usize = 63;

/// The most bytes of the annotation that holds the entries.
pub const ENTRIES_BYTES: usize = 32 << 10;

/// The most employers of one pod.
pub const EMPLOYERS: usize = 64;

/// The most bytes of the recording annotations together.
pub const RECORD_BYTES: usize = 200 << 10;

/// The key of an employer in a pod's entries: `<Kind>/<namespace>/<name>`.
pub fn key(kind: &str, namespace: &str, name: &str) -> String {
    format!("{kind}/{namespace}/{name}")
}

/// The protection finalizer of a name: the prefix and 16 hexadecimal digits from the middle of the name's MD5. A name, not
/// security: two employers of one name share it, which is reported.
pub fn lifecycle_finalizer(name: &str) -> String {
    let digest = Md5::digest(name.as_bytes());
    let middle = digest.iter().skip(4).take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    format!("{}/{middle:016x}", keys::PROTECTION_PREFIX)
}

/// The protection finalizers that are an employer's: the one that is written first, then the other form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFinalizers {
    /// What is written.
    pub written: String,
    /// What is known as ours wherever it is found.
    pub other: String,
}

impl OwnFinalizers {
    /// The finalizers of an employer under a rule.
    pub fn of(rule: FinalizerRule, kind: &str, group: &str, namespace: &str, name: &str) -> Self {
        let by_name = lifecycle_finalizer(name);
        let by_key = lifecycle_finalizer(&format!("{kind}.{group}/{namespace}/{name}"));
        match rule {
            FinalizerRule::Name => Self { written: by_name, other: by_key },
            FinalizerRule::Key => Self { written: by_key, other: by_name },
        }
    }

    /// Whether a finalizer is one of them.
    pub fn has(&self, finalizer: &str) -> bool {
        finalizer == self.written || finalizer == self.other
    }
}

/// Whether a finalizer holds operations on a pod.
pub fn protects(finalizer: &str) -> bool {
    finalizer.strip_prefix(keys::PROTECTION_PREFIX).is_some_and(|rest| rest.starts_with('/'))
}

/// The clean finalizer that an employer of this name gets: the document's, or the later original's where that would be no
/// valid finalizer.
pub fn clean_finalizer(name: &str) -> String {
    let own = format!("{}{name}", keys::CLEAN_PREFIX);
    let behind = own.split_once('/').map_or(0, |(_, behind)| behind.len());
    if behind <= FINALIZER_NAME { own } else { keys::CLEAN.to_owned() }
}

/// Whether a finalizer is a clean finalizer of an employer of this name, in either form.
pub fn is_clean_finalizer(finalizer: &str, name: &str) -> bool {
    finalizer == keys::CLEAN || finalizer.strip_prefix(keys::CLEAN_PREFIX) == Some(name)
}

/// The entries of a pod, as its annotation says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodEntries {
    /// Key of the employer → finalizer that it puts on the pod.
    Known(BTreeMap<String, String>),
    /// Not what the annotation is to hold: nobody knows what is expected.
    Unreadable,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    expected_finalizers: &'a BTreeMap<String, String>,
}

impl PodEntries {
    /// Reads the annotation. None, `{}` and `null` are no entries; an empty text is not.
    pub fn read(annotation: Option<&str>) -> Self {
        let Some(text) = annotation else { return Self::Known(BTreeMap::new()) };
        if text.len() > ENTRIES_BYTES {
            return Self::Unreadable;
        }
        let entries = match serde_json::from_str(text) {
            Ok(Value::Null) => Value::Null,
            Ok(Value::Object(mut fields)) => fields.remove("expectedFinalizers").unwrap_or_default(),
            Ok(_) | Err(_) => return Self::Unreadable,
        };
        let entries: Result<Option<BTreeMap<String, String>>, _> = serde_json::from_value(entries);
        entries.map_or(Self::Unreadable, |entries| Self::Known(entries.unwrap_or_default()))
    }

    /// Whether this very entry is there.
    pub fn has(&self, key: &str, finalizer: &str) -> bool {
        matches!(self, Self::Known(entries) if entries.get(key).is_some_and(|value| value == finalizer))
    }

    /// Whether there is an entry of this employer, whatever it says.
    pub fn has_key(&self, key: &str) -> bool {
        matches!(self, Self::Known(entries) if entries.contains_key(key))
    }

    /// The keys of the employers that have an entry.
    pub fn keys(&self) -> BTreeSet<String> {
        match self {
            Self::Known(entries) => entries.keys().cloned().collect(),
            Self::Unreadable => BTreeSet::new(),
        }
    }

    /// Whether every finalizer that is expected is there.
    pub fn satisfied(&self, finalizers: &[String]) -> bool {
        match self {
            Self::Known(entries) => entries.values().all(|expected| finalizers.contains(expected)),
            Self::Unreadable => false,
        }
    }

    /// The annotation with one entry more, or as it is where that is there already.
    ///
    /// # Errors
    /// It cannot be read, or would be too large. In words.
    pub fn with(&self, key: &str, finalizer: &str) -> Result<String, String> {
        let Self::Known(entries) = self else { return Err("what is in it cannot be read".to_owned()) };
        let mut entries = entries.clone();
        entries.insert(key.to_owned(), finalizer.to_owned());
        if entries.len() > EMPLOYERS {
            return Err(format!("a pod has at most {EMPLOYERS} employers"));
        }
        let text = write(&entries);
        if text.len() > ENTRIES_BYTES {
            return Err(format!("it would have more than {ENTRIES_BYTES} bytes"));
        }
        Ok(text)
    }

    /// The annotation with one entry less; none where it is not there.
    pub fn without(&self, key: &str) -> Option<String> {
        let Self::Known(entries) = self else { return None };
        let mut entries = entries.clone();
        entries.remove(key)?;
        Some(write(&entries))
    }

    /// Whether an employer other than `key` expects this finalizer.
    pub fn shares(&self, key: &str, finalizer: &str) -> bool {
        self.sharing(key, finalizer).is_some()
    }

    /// The employer other than `key` that expects this finalizer.
    pub fn sharing(&self, key: &str, finalizer: &str) -> Option<&str> {
        let Self::Known(entries) = self else { return None };
        entries
            .iter()
            .find(|(other, value)| *other != key && *value == finalizer)
            .map(|(other, _)| other.as_str())
    }
}

fn write(entries: &BTreeMap<String, String>) -> String {
    // A map of texts is always JSON.
    serde_json::to_string(&Written { expected_finalizers: entries }).unwrap_or_else(|_| "{}".to_owned())
}

/// The names in a recording annotation; an empty text is no name.
pub fn recorded(annotation: Option<&str>) -> BTreeSet<String> {
    let names = annotation.unwrap_or_default().split(',').map(str::trim);
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The recording annotation for these names; none where there are none.
pub fn record<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let sorted: BTreeSet<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
    let text = sorted.into_iter().collect::<Vec<_>>().join(",");
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lifecycle_finalizers_are_those_of_the_original() {
        for (name, suffix) in [
            ("resource-consist-ut-svc-1", "7ba82bbc976edd3f"),
            ("svc1", "3e014941a8ff550d"),
            ("my-svc", "17076b0ee0366998"),
            ("demo", "7fbac8fafaed7c98"),
            ("web", "9705eb7ac2c98403"),
        ] {
            assert_eq!(lifecycle_finalizer(name), format!("prot.podopslifecycle.kusionstack.io/{suffix}"));
        }
    }

    #[test]
    fn generate_lifecycle_finalizer_key_is_kind_namespace_name() {
        assert_eq!(key("Service", "shop", "web"), "Service/shop/web");
    }

    #[test]
    fn by_key_a_service_and_a_gateway_of_one_name_do_not_share_a_finalizer_and_by_name_they_do() {
        let of = |rule, kind, group| OwnFinalizers::of(rule, kind, group, "shop", "web");
        let (service, gateway) = ("Service", "Gateway");
        assert_eq!(
            of(FinalizerRule::Name, service, "").written,
            of(FinalizerRule::Name, gateway, "example.com").written
        );
        let by_key = of(FinalizerRule::Key, service, "");
        assert_ne!(by_key.written, of(FinalizerRule::Key, gateway, "example.com").written);
        assert!(by_key.has(&lifecycle_finalizer("web")), "both forms are ours wherever found");
    }

    #[test]
    fn the_clean_finalizer_is_the_documents_and_the_later_one_where_the_name_is_too_long() {
        assert_eq!(clean_finalizer("web"), "resource-consist.kusionstack.io/clean-web");
        let longest = "n".repeat(57);
        assert_eq!(clean_finalizer(&longest), format!("resource-consist.kusionstack.io/clean-{longest}"));
        for length in [58, 253] {
            let name = "n".repeat(length);
            assert_eq!(clean_finalizer(&name), "resource-consist.kusionstack.io/clean-finalizer");
        }
        assert!(is_clean_finalizer(keys::CLEAN, "web") && is_clean_finalizer(&clean_finalizer("web"), "web"));
        assert!(!is_clean_finalizer(&clean_finalizer("api"), "web"));
    }

    #[test]
    fn pod_available_conditions_are_read_and_written_as_the_document_has_them() {
        let none = PodEntries::read(None);
        let one = none.with("Service/shop/web", "prot.podopslifecycle.kusionstack.io/9705eb7ac2c98403");
        let text = r#"{"expectedFinalizers":{"Service/shop/web":"prot.podopslifecycle.kusionstack.io/9705eb7ac2c98403"}}"#;
        assert_eq!(one.as_deref(), Ok(text));
        let entries = PodEntries::read(Some(text));
        assert!(entries.has_key("Service/shop/web") && !entries.satisfied(&[]));
        assert!(entries.satisfied(&[lifecycle_finalizer("web")]));
        assert_eq!(entries.without("Service/shop/web").as_deref(), Some("{}"), "never an empty text");
        assert_eq!(entries.without("Service/shop/api"), None);
        assert_eq!(entries.with("Service/shop/web", &lifecycle_finalizer("web")).as_deref(), Ok(text));
    }

    #[test]
    fn what_others_wrote_is_read_leniently_or_not_at_all() {
        for empty in ["{}", "null", r#"{"expectedFinalizers":null}"#, r#"{"expectedFinalizers":{}}"#] {
            assert_eq!(PodEntries::read(Some(empty)), PodEntries::Known(BTreeMap::new()), "{empty}");
        }
        for garbage in ["", "x", "[]", r#"{"expectedFinalizers":{"a":1}}"#, r#"{"expectedFinalizers":"a"}"#] {
            let entries = PodEntries::read(Some(garbage));
            assert_eq!(entries, PodEntries::Unreadable, "{garbage}");
            assert!(!entries.satisfied(&[]), "{garbage}");
            assert!(entries.with("a", "b").unwrap_err().contains("cannot be read"));
            assert_eq!(entries.without("a"), None);
        }
    }

    #[test]
    fn entries_stop_at_their_limit() {
        let name = |length: usize| "n".repeat(length);
        let mut entries = PodEntries::read(None);
        let overhead = write(&BTreeMap::from([(String::new(), String::new())])).len();
        assert!(entries.with(&name(ENTRIES_BYTES - overhead), "").is_ok());
        assert!(entries.with(&name(ENTRIES_BYTES - overhead + 1), "").is_err());
        assert!(entries.with(&name(ENTRIES_BYTES * 100), "").is_err());
        for number in 0..EMPLOYERS {
            entries = PodEntries::read(Some(&entries.with(&format!("Service/shop/s{number}"), "f").unwrap()));
        }
        assert!(entries.with("Service/shop/more", "f").unwrap_err().contains("at most 64 employers"));
        assert!(entries.with("Service/shop/s0", "g").is_ok(), "no employer more");
        entries = PodEntries::read(Some(&name(ENTRIES_BYTES * 100)));
        assert_eq!(entries, PodEntries::Unreadable);
    }

    #[test]
    fn need_record_employees_writes_sorted_names_and_an_empty_text_is_no_name() {
        assert_eq!(record(["b", "a", "b"]).as_deref(), Some("a,b"));
        assert_eq!(record([]), None);
        assert!(recorded(Some("")).is_empty() && recorded(None).is_empty());
        assert_eq!(recorded(Some("b,a,,")), BTreeSet::from(["a".to_owned(), "b".to_owned()]));
    }

    proptest! {
        #[test]
        fn reading_never_fails_and_what_is_written_is_read_again(text in any::<String>(), key in ".{1,40}", value in ".{0,40}") {
            let entries = PodEntries::read(Some(&text));
            if let Ok(with) = entries.with(&key, &value) {
                let read = PodEntries::read(Some(&with));
                prop_assert!(read.has(&key, &value));
                prop_assert!(!PodEntries::read(read.without(&key).as_deref()).has_key(&key));
            }
        }
    }
}
