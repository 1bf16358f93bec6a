//! References read as the documents write them, and wrong ones say what to write instead.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn parts(text: &str) -> (String, Option<String>, Option<String>, String) {
    let Reference { word, name } = Reference::parse(text).unwrap();
    (word.word, word.version, word.group, name.unwrap())
}

fn error(text: &str) -> String {
    Reference::parse(text).unwrap_err().to_string()
}

#[test]
fn kinds_are_written_with_and_without_group_and_version() {
    assert_eq!(parts("deployment/web"), ("deployment".into(), None, None, "web".into()));
    assert_eq!(
        parts("controlplane.kubeflex.kubestellar.io/its1"),
        ("controlplane".into(), None, Some("kubeflex.kubestellar.io".into()), "its1".into())
    );
    assert_eq!(
        parts("Deployment.v1.apps/web"),
        ("deployment".into(), Some("v1".into()), Some("apps".into()), "web".into())
    );
    assert_eq!(parts("pods.v1/db-0"), ("pods".into(), Some("v1".into()), Some(String::new()), "db-0".into()));
    assert_eq!(
        parts("hpa.v2beta1.autoscaling/x"),
        ("hpa".into(), Some("v2beta1".into()), Some("autoscaling".into()), "x".into())
    );
    assert_eq!(parts("thing.vault.io/x"), ("thing".into(), None, Some("vault.io".into()), "x".into()));
    assert_eq!(
        parts("crd/placements.cluster.open-cluster-management.io"),
        ("crd".into(), None, None, "placements.cluster.open-cluster-management.io".into())
    );
}

#[test]
fn names_keep_their_case_and_their_colons() {
    assert_eq!(parts("ClusterRole/system:Node").3, "system:Node");
}

#[test]
fn the_servers_version_is_recognised() {
    assert!(Reference::parse("version/kubernetes").unwrap().is_server_version());
    assert!(!Reference::parse("version.example.com/kubernetes").unwrap().is_server_version());
    assert!(!Reference::parse("version/other").unwrap().is_server_version());
}

#[test]
fn a_kind_alone_needs_a_selector() {
    assert_eq!(
        error("deployment"),
        "\"deployment\" has no name; write kind/name, for example deployment/web, or give a selector"
    );
    assert_eq!(
        error("deployment/"),
        "\"deployment/\" has no name; write kind/name, for example deployment/web, or give a selector"
    );
    assert_eq!(Reference::parse_kind("pod").unwrap(), Reference { word: KindWord::new("pod"), name: None });
    assert_eq!(
        Reference::parse_kind("pod/x").unwrap_err().to_string(),
        "\"pod/x\" names one object at character 4; with a selector write the kind only, for example pod"
    );
}

#[test]
fn a_wrong_reference_is_told_where_and_what_was_expected() {
    for (text, message) in [
        ("", "the reference is empty; write kind/name, for example deployment/web"),
        ("/web", "\"/web\": expected a kind at character 1; write kind/name or kind.group/name"),
        (
            "de ploy/web",
            "\"de ploy/web\": expected a letter, a digit, \".\" or \"/\" at character 3; write kind/name or kind.group/name",
        ),
        ("pod./x", "\"pod./x\": expected an API group at character 5; write kind/name or kind.group/name"),
        (
            "pod.a..b/x",
            "\"pod.a..b/x\": expected a part of the API group at character 7; write kind/name or kind.group/name",
        ),
        (
            "pod.v1.a_b/x",
            "\"pod.v1.a_b/x\": expected a letter, a digit, \"-\", \".\" or \"/\" at character 9; write kind/name or kind.group/name",
        ),
        (
            "apps/v1/Deployment/web",
            "\"apps/v1/Deployment/web\": unexpected \"/\" in the name at character 8; a group is written kind.group/name, a namespace goes into the field namespace",
        ),
        (
            "pod/{{ .Values.x }}",
            "\"pod/{{ .Values.x }}\": unexpected \"{\" in the name at character 5; references are not templates",
        ),
        (
            "pod/a\nb",
            "\"pod/a\\nb\": unexpected \"\\n\" in the name at character 6; names have no white space",
        ),
        ("pod/..", "\"pod/..\": unexpected \"..\" in the name at character 5; this is no name"),
    ] {
        assert_eq!(error(text), message, "{text}");
    }
}

#[test]
fn parts_are_bounded() {
    let name = "n".repeat(limits::NAME);
    assert_eq!(parts(&format!("pod/{name}")).3, name);
    for times in [1, 100] {
        let longer = "n".repeat(limits::NAME * times + 1);
        assert!(
            error(&format!("pod/{longer}")).ends_with("the name at character 5 is longer than 253 bytes")
        );
        assert!(error(&format!("{longer}/x")).ends_with("the kind at character 1 is longer than 63 bytes"));
        assert!(
            error(&format!("pod.{longer}/x"))
                .ends_with("the API group at character 5 is longer than 253 bytes")
        );
    }
}

#[test]
fn words_mean_kubernetes_own_kinds() {
    for (word, group, kind, namespaced) in [
        ("deploy", "apps", "Deployment", true),
        ("Deployment", "apps", "Deployment", true),
        ("deployments.apps", "apps", "Deployment", true),
        ("crd", "apiextensions.k8s.io", "CustomResourceDefinition", false),
        ("ns", "", "Namespace", false),
        ("events", "", "Event", true),
        ("events.events.k8s.io", "events.k8s.io", "Event", true),
        ("endpoints", "", "Endpoints", true),
        ("pods.v1", "", "Pod", true),
        ("ing", "networking.k8s.io", "Ingress", true),
        ("hpa", "autoscaling", "HorizontalPodAutoscaler", true),
    ] {
        let found = built_in(&KindWord::parse(word).unwrap()).unwrap();
        assert_eq!((found.group, found.kind, found.namespaced), (group, kind, namespaced), "{word}");
    }
    for word in
        ["controlplane", "deployment.example.com", "deployment.v1beta1.apps", "binding", "ingress.extensions"]
    {
        assert_eq!(built_in(&KindWord::parse(word).unwrap()), None, "{word}");
    }
}

#[test]
fn no_word_names_two_built_in_kinds() {
    let mut seen = BTreeSet::new();
    for entry in all_built_in().iter().filter(|entry| entry.group != "events.k8s.io") {
        let kind = entry.kind.to_ascii_lowercase();
        let words: BTreeSet<&str> =
            [kind.as_str(), entry.plural].into_iter().chain(entry.short.iter().copied()).collect();
        for word in words {
            assert!(seen.insert(word.to_owned()), "{word}");
        }
        assert_eq!(built_in_kind(entry.group, entry.kind), Some(entry));
    }
}

#[test]
fn a_manifests_kind_is_a_word_too() {
    let written = KindWord::from_manifest(Some("apps/v1"), "Deployment");
    assert_eq!(written, KindWord::parse("deployment.v1.apps").unwrap());
    assert_eq!(KindWord::from_manifest(Some("v1"), "Pod"), KindWord::parse("pod.v1").unwrap());
    assert_eq!(KindWord::from_manifest(None, "Deployment"), KindWord::new("deployment"));
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "[a-z0-9./{} -]{0,40}|\\PC{0,60}") {
        let _ = Reference::parse(&text);
        let _ = Reference::parse_kind(&text);
    }

    #[test]
    fn every_reference_survives_its_own_text(
        text in "[a-zA-Z][a-zA-Z0-9]{0,8}(\\.v[1-9](alpha[1-9]|beta[1-9])?)?(\\.[a-z]{2,8}){0,3}/[a-z:][a-zA-Z0-9.:-]{0,20}"
    ) {
        let reference = Reference::parse(&text).unwrap();
        prop_assert_eq!(Reference::parse(&reference.to_string()).unwrap(), reference.clone());
        let word = serde_json::to_string(&reference.word).unwrap();
        prop_assert_eq!(serde_json::from_str::<KindWord>(&word).unwrap(), reference.word);
    }
}
