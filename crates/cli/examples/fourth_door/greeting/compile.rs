//! From a Greeting to a plan: a requirement and an action after it.

use std::{collections::BTreeSet, sync::Arc};

use kube_core::ResourceExt as _;
use linchpin_doors::{CompileInput, Compiled};
use linchpin_engine::{
    contract::{Existing, ReadSet, Right, StepId, Via, Want},
    plan::{
        ActionBody, After, Document, Documents, Plan, PlannedAction, Requirement, SpecError, Step, StepKind,
        Terms, Test,
    },
};
use linchpin_words::{GroupKind, Gvk, ObjectRef};
use serde_json::json;

use crate::types::Greeting;

pub(super) fn compile(object: &Greeting, input: &CompileInput<'_>) -> Result<Compiled, SpecError> {
    let namespace = object.namespace().unwrap_or_default();
    let account = object.spec.common.service_account_name.as_deref().unwrap_or(input.default_service_account);
    let via = Via::service_account(&namespace, account);
    let (reader, name) = (&object.spec.reader, format!("greeting-{}", object.name_any()));
    let config_map = Gvk::new("", "v1", "ConfigMap");
    let want = Want::object(via.clone(), config_map, Some(namespace.clone()), reader, ReadSet::nothing());
    let right = |verb: &str, name: Option<&str>| Right {
        verb: verb.to_owned(),
        group: String::new(),
        resource: "configmaps".to_owned(),
        subresource: None,
        namespace: Some(namespace.clone()),
        name: name.map(str::to_owned),
    };
    let requirement = Requirement {
        rights: vec![right("get", Some(reader)), right("list", Some(reader)), right("watch", Some(reader))],
        ..Requirement::new(format!("configmap/{reader}"), want, Test::default())
    };
    let value = Arc::new(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace}, "data": {"text": object.spec.text}}));
    let documents = Documents::Objects(vec![Document { value, template: None }]);
    let body = ActionBody::Create { documents, existing: Existing::Skip };
    let action = PlannedAction {
        rights: vec![right("create", None), right("get", Some(&name))],
        ..PlannedAction::new(via, body, &namespace, "fourth-door")
    };
    let id = StepId::new("reader");
    let waits = Step::new(id.clone(), "spec.reader", "1", StepKind::Require(Box::new(requirement)));
    let mut says =
        Step::new(StepId::new("say"), "spec.text", object.spec.text.clone(), StepKind::Act(Box::new(action)));
    says.after = vec![After::success(id)];
    let owner =
        ObjectRef::namespaced(GroupKind::new("fourth.example", "Greeting"), &namespace, object.name_any());
    let generation = object.metadata.generation.unwrap_or_default();
    let uid = object.uid().unwrap_or_default();
    let plan = Plan::new(owner, uid, generation, vec![waits, says], Terms::default())?;
    Ok(Compiled { plan, wants: BTreeSet::new() })
}
