//! Which object is meant on a command line: `rd/web`, `rd/shop/web`, `rd web`.
//!
//! The words of a reference are those of `resource` in our kinds, with the namespace between kind and name where it is
//! not the one of `-n` or the context; two words are understood as kubectl understands them. A kind of ours is known
//! without a cluster, by all its names.

use clap::Args;
use linchpin_doors::Registry;
use linchpin_operator::settings::{Namespaces, NamespacesError};
use linchpin_words::{
    GroupKind, Gvk, KindWord, Reference,
    reference::{all_built_in, built_in},
    similar,
};
use serde_json::{Value, json};

use crate::cli::UsageError;

/// The object a command is about.
#[derive(Debug, Args)]
pub(crate) struct ObjectArgument {
    /// The object: kind/name, kind/namespace/name, or kind and name as two words.
    #[arg(value_name = "KIND/NAME", required = true, num_args = 1..=2)]
    object: Vec<String>,
    /// Its namespace [default: the context's].
    #[arg(short, long)]
    pub(crate) namespace: Option<String>,
}

/// An object as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestedObject {
    /// Its kind and name.
    pub(crate) reference: Reference,
    /// Its namespace, where the command line says one.
    pub(crate) namespace: Option<String>,
    /// One part of it: `data` in `AppBundle shop/web[data]`.
    pub(crate) part: Option<String>,
}

/// The name of one namespace, where it goes into what is printed and is not asked of a cluster.
pub(crate) fn namespace(text: &str) -> Result<String, NamespacesError> {
    let wrong = || NamespacesError(text.to_owned());
    let Namespaces::Only(names) = text.parse()? else { return Err(wrong()) };
    let mut names = names.into_iter();
    match (names.next(), names.next()) {
        (Some(one), None) => Ok(one),
        _ => Err(wrong()),
    }
}

impl ObjectArgument {
    /// Reads what was asked for.
    pub(crate) fn read(&self) -> Result<RequestedObject, UsageError> {
        RequestedObject::read(&self.object.join("/"), self.namespace.as_deref())
    }
}

impl RequestedObject {
    /// Reads `kind/name` or `kind/namespace/name`; `namespace` is that of the command line.
    pub(crate) fn read(written: &str, namespace: Option<&str>) -> Result<Self, UsageError> {
        let (written, part) = match written.strip_suffix(']').and_then(|inner| inner.split_once('[')) {
            Some((whole, part)) => (whole, Some(part.to_owned())),
            None => (written, None),
        };
        let parts: Vec<&str> = written.split('/').collect();
        let (text, inner) = match parts.as_slice() {
            [kind, namespace, name] => (format!("{kind}/{name}"), Some((*namespace).to_owned())),
            _ => (written.to_owned(), None),
        };
        let reference = Reference::parse(&text).map_err(|error| UsageError(error.to_string()))?;
        match (&inner, namespace) {
            (Some(inner), Some(flag)) if inner != flag => Err(UsageError(format!(
                "{written} names namespace {inner}, and -n names {flag}; name one of them"
            ))),
            _ => Ok(Self { reference, namespace: inner.or_else(|| namespace.map(str::to_owned)), part }),
        }
    }

    /// The name; a reference that was read has one.
    pub(crate) fn name(&self) -> &str {
        self.reference.name.as_deref().unwrap_or_default()
    }

    /// The kind of ours that is meant.
    fn ours(&self, registry: &Registry) -> Option<AddressableKind> {
        own_kinds(registry).into_iter().find(|kind| kind.is_called(&self.reference.word))
    }

    /// The kind of ours that is meant, or what to write instead.
    pub(crate) fn must_be_ours(&self, registry: &Registry) -> Result<AddressableKind, UsageError> {
        self.ours(registry).ok_or_else(|| {
            let word = &self.reference.word.word;
            let kinds = own_kinds(registry);
            let names: Vec<&str> = kinds.iter().flat_map(AddressableKind::names).collect();
            let known: Vec<String> = kinds.iter().map(AddressableKind::shortest).collect();
            let meant = similar::did_you_mean(word, names);
            UsageError(format!("{word} is no kind of Linchpin{meant} (kinds: {})", known.join(", ")))
        })
    }
}

/// What may have been meant by a word that no kind is called by.
pub(crate) fn kind_meant(word: &KindWord, registry: &Registry) -> String {
    if built_in(word).is_some() {
        return String::new();
    }
    let ours = own_kinds(registry);
    let mut known: Vec<String> = all_built_in().iter().map(|kind| kind.kind.to_ascii_lowercase()).collect();
    known.extend(all_built_in().iter().map(|kind| kind.plural.to_owned()));
    known.extend(ours.iter().flat_map(AddressableKind::names).map(str::to_owned));
    similar::did_you_mean(&word.word, known.iter().map(String::as_str))
}

/// A kind of ours whose objects people speak of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AddressableKind {
    /// The kind.
    pub(crate) gvk: Gvk,
    /// As in URLs.
    pub(crate) plural: String,
    /// Whether its objects are in namespaces.
    pub(crate) namespaced: bool,
    /// Whether its objects can be suspended.
    pub(crate) suspends: bool,
    /// Whether its objects can go back to an earlier revision.
    pub(crate) rolls_back: bool,
    singular: String,
    short: Vec<String>,
}

impl AddressableKind {
    /// Whether it is this one.
    pub(crate) fn group_kind(&self) -> GroupKind {
        self.gvk.group_kind()
    }

    /// What kubectl is given: the kind in lower case.
    pub(crate) fn word(&self) -> String {
        self.singular.clone()
    }

    fn is_called(&self, word: &KindWord) -> bool {
        let named =
            self.gvk.kind.eq_ignore_ascii_case(&word.word) || self.names().any(|name| name == word.word);
        named && word.group.as_ref().is_none_or(|group| *group == self.gvk.group)
    }

    fn shortest(&self) -> String {
        self.short.iter().min_by_key(|name| name.len()).unwrap_or(&self.singular).clone()
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        [self.singular.as_str(), self.plural.as_str()]
            .into_iter()
            .chain(self.short.iter().map(String::as_str))
    }
}

/// The shortest name of a kind of ours; of any other kind its own, in lower case.
pub(crate) fn short_name(kind: &GroupKind, registry: &Registry) -> String {
    let ours = own_kinds(registry).into_iter().find(|own| own.group_kind() == *kind);
    ours.map_or_else(|| kind.kind.to_ascii_lowercase(), |own| own.shortest())
}

/// All kinds of ours whose objects say how they are, from their definitions.
fn own_kinds(registry: &Registry) -> Vec<AddressableKind> {
    let definitions = registry.definitions();
    let kinds = definitions.iter().map(|definition| json!(definition.spec));
    kinds.filter_map(|spec| own_kind(&spec)).collect()
}

fn own_kind(spec: &Value) -> Option<AddressableKind> {
    let text = |path: &str| spec.pointer(path).and_then(Value::as_str);
    spec.pointer("/versions/0/subresources/status")?;
    let short = spec.pointer("/names/shortNames").and_then(Value::as_array).into_iter().flatten();
    let fields = "/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    Some(AddressableKind {
        gvk: Gvk::new(text("/group")?, text("/versions/0/name")?, text("/names/kind")?),
        plural: text("/names/plural")?.to_owned(),
        namespaced: text("/scope") == Some("Namespaced"),
        suspends: spec.pointer(fields)?.get("suspend").is_some(),
        rolls_back: spec.pointer(fields)?.get("rollback").is_some(),
        singular: text("/names/kind")?.to_ascii_lowercase(),
        short: short.filter_map(Value::as_str).map(str::to_owned).collect(),
    })
}

#[cfg(test)]
mod tests {
    use linchpin_doors::registry;

    use super::*;

    fn read(words: &[&str], namespace: Option<&str>) -> Result<RequestedObject, String> {
        let object = words.iter().map(|word| (*word).to_owned()).collect();
        ObjectArgument { object, namespace: namespace.map(str::to_owned) }
            .read()
            .map_err(|UsageError(why)| why)
    }

    #[test]
    fn an_object_is_written_in_one_word_or_two_with_or_without_its_namespace() {
        for (words, flag, namespace) in [
            (&["rd/web"][..], None, None),
            (&["rd", "web"], None, None),
            (&["rd/shop/web"], None, Some("shop")),
            (&["rd", "shop/web"], None, Some("shop")),
            (&["resourcedependencies.tools.kubestellar.io/web"], Some("shop"), Some("shop")),
            (&["rd/shop/web"], Some("shop"), Some("shop")),
        ] {
            let asked = read(words, flag).unwrap();
            assert_eq!((asked.name(), asked.namespace.as_deref()), ("web", namespace), "{words:?}");
            assert_eq!(
                asked.must_be_ours(&registry()).map_err(|_| ()).unwrap().gvk.kind,
                "ResourceDependency"
            );
        }
        // As our own output calls a part, with or without a slash for the blank.
        for words in [&["ab/shop/web[data]"][..], &["AppBundle", "shop/web[data]"]] {
            let asked = read(words, None).unwrap();
            assert_eq!((asked.name(), asked.part.as_deref()), ("web", Some("data")), "{words:?}");
        }
        let both = read(&["rd/shop/web"], Some("other")).unwrap_err();
        assert_eq!(both, "rd/shop/web names namespace shop, and -n names other; name one of them");
        assert!(read(&["rd"], None).unwrap_err().contains("has no name"));
        assert!(read(&["a/b/c/d"], None).is_err());
    }

    #[test]
    fn what_is_no_kind_of_ours_is_told_which_was_meant() {
        let why = |text: &str| read(&[text], None).unwrap().must_be_ours(&registry()).unwrap_err().0;
        let message = why("appbundel/x");
        assert!(
            message.starts_with("appbundel is no kind of Linchpin; did you mean appbundle? (kinds: ab, "),
            "{message}"
        );
        assert!(why("secret/x").starts_with("secret is no kind of Linchpin (kinds: ab, "));
        let word = |text: &str| Reference::parse(text).unwrap().word;
        assert_eq!(kind_meant(&word("deploymnet/x"), &registry()), "; did you mean deployment?");
        assert_eq!(kind_meant(&word("deployment/x"), &registry()), "");
    }
}
