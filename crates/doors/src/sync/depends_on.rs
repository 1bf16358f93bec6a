//! `config.kubernetes.io/depends-on`, as cli-utils writes it: `group/namespaces/ns/Kind/name` or `group/Kind/name`,
//! separated by commas.

use linchpin_words::{GroupKind, limits};

/// One object that another names as what it depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DependsOnReference {
    pub kind: GroupKind,
    pub namespace: Option<String>,
    pub name: String,
}

/// Reads an annotation; the error says what was expected.
pub(super) fn parse(text: &str) -> Result<Vec<DependsOnReference>, String> {
    let entries: Vec<&str> = text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).collect();
    if entries.len() > limits::AFTER {
        return Err(format!("it names {} objects; {} are allowed", entries.len(), limits::AFTER));
    }
    entries.into_iter().map(one).collect()
}

fn one(text: &str) -> Result<DependsOnReference, String> {
    let parts: Vec<&str> = text.split('/').collect();
    let (group, namespace, kind, name) = match parts.as_slice() {
        [group, "namespaces", namespace, kind, name] => (*group, Some(*namespace), *kind, *name),
        [group, kind, name] => (*group, None, *kind, *name),
        _ => {
            let problem = "is neither group/namespaces/NAMESPACE/KIND/NAME nor group/KIND/NAME (the core group is empty)";
            return Err(format!("{text:?} {problem}"));
        }
    };
    if kind.is_empty() || name.is_empty() || namespace.is_some_and(str::is_empty) {
        return Err(format!("{text:?} has an empty part"));
    }
    Ok(DependsOnReference {
        kind: GroupKind::new(group, kind),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_and_others_are_refused() {
        let found =
            parse("apps/namespaces/shop/Deployment/web, /Namespace/shop,/namespaces/a/Secret/b").unwrap();
        let shown: Vec<String> = found
            .iter()
            .map(|one| format!("{} {}/{}", one.kind, one.namespace.as_deref().unwrap_or("-"), one.name))
            .collect();
        assert_eq!(shown, ["Deployment.apps shop/web", "Namespace -/shop", "Secret a/b"]);
        for wrong in ["web", "apps/Deployment", "apps/namespaces/shop/Deployment", "a/b/c/d", "apps//x", "//"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse(" , ").unwrap(), []);
    }
}
