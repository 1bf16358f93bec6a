//! Words that mean more than one kind.

use crate::world::scenario;

fn definition(group: &str) -> String {
    format!(
        "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: gizmos.{group}}}
spec:
  group: {group}
  scope: Namespaced
  names: {{kind: Gizmo, plural: gizmos, singular: gizmo}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"
    )
}

#[test]
fn a_word_that_names_two_kinds_is_refused_until_one_of_them_is_gone() {
    let scenario = scenario("two-kinds");
    scenario.apply(&definition("left.example.com"));
    scenario.apply(&definition("right.example.com"));
    scenario.until("is served", "CustomResourceDefinition", "gizmos.right.example.com", |definition| {
        let conditions = definition["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|one| one["type"] == "Established" && one["status"] == "True")
    });
    let unclear = "{dependencies: [{resource: gizmo/x, state: Absent}]}";
    // The second definition may be noticed a moment after the object, which then has a meaning that stays.
    let mut attempt = 0;
    let said = loop {
        attempt += 1;
        let name = format!("rd-{attempt}");
        scenario.resource_dependency(&name, unclear);
        let object = scenario.until("is looked at", "ResourceDependency", &name, |object| {
            let status = &object["status"];
            status["phase"] == "Failed"
                || !status["blockedBy"][0]["reason"].is_null()
                || status["phase"] == "Completed"
        });
        if object["status"]["phase"] == "Failed" || attempt == 20 {
            break object;
        }
    };
    let message = said["status"]["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("spec.dependencies[0].resource: \"gizmo\" names several kinds: Gizmo.left.example.com, Gizmo.right.example.com"),
        "{message}"
    );
    scenario.api.delete("CustomResourceDefinition", "", "gizmos.right.example.com");
    let name = format!("rd-{attempt}");
    scenario.until("means the one that is left", "ResourceDependency", &name, |object| {
        object["status"]["phase"] != "Failed"
    });
}
