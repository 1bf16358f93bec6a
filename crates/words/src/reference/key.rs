//! The keys under which templates find a dependency.

/// The keys of a dependency in `.Dependencies`, the most particular first: its `name` as written and as an
/// identifier, and the kind as written with the object's name (`controlplane_its1`), without the group. A
/// dependency found by selector has no object's name, so its last key is the kind alone.
pub fn template_keys(name: Option<&str>, kind: &str, object: Option<&str>) -> Vec<String> {
    let kind = kind.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let long = match object {
        Some(object) => format!("{kind}_{object}"),
        None => kind,
    };
    let mut keys: Vec<String> = Vec::with_capacity(3);
    for key in
        [name.map(str::to_owned), name.map(as_identifier), Some(as_identifier(&long))].into_iter().flatten()
    {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

/// `text` with every character but letters and digits turned into `_`, so that a template can write it after a dot.
pub fn as_identifier(text: &str) -> String {
    text.chars().map(|character| if character.is_ascii_alphanumeric() { character } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_keys_are_found() {
        assert_eq!(
            template_keys(None, "namespace", Some("kubestellar-system")),
            ["namespace_kubestellar_system"]
        );
        assert_eq!(
            template_keys(None, "controlplane.kubeflex.kubestellar.io", Some("its1")),
            ["controlplane_its1"]
        );
        assert_eq!(template_keys(None, "version", Some("kubernetes")), ["version_kubernetes"]);
    }

    #[test]
    fn a_name_is_a_key_as_written_and_as_an_identifier() {
        assert_eq!(
            template_keys(Some("my-db"), "Deployment", Some("db")),
            ["my-db", "my_db", "deployment_db"]
        );
        assert_eq!(template_keys(Some("db"), "deploy", Some("db")), ["db", "deploy_db"]);
    }

    #[test]
    fn a_selection_is_found_under_its_kind() {
        assert_eq!(template_keys(None, "Pod", None), ["pod"]);
    }
}
