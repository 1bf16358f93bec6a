//! The rights that writing a document needs, as far as it can be read before it is rendered.

use linchpin_engine::{
    contract::{Right, Via},
    rights::{self, ObjectAccess},
};
use linchpin_words::{KindWord, ObjectRef};
use serde_json::Value;

use crate::{assemble::Frame, kinds::KindMeaning, sketch};

/// What an action needs.
#[derive(Debug, Default)]
pub(super) struct ActionRights {
    /// Before it may start.
    pub rights: Vec<Right>,
    /// To take away again what it made.
    pub later: Vec<Right>,
    /// What is not known before it is rendered, in words.
    pub open: Vec<String>,
    /// The objects it writes, as far as they are known.
    pub makes: Vec<ObjectRef>,
}

impl ActionRights {
    /// What one object that is there already needs.
    pub(super) fn only(rights: Vec<Right>) -> Self {
        Self { rights, ..Self::default() }
    }

    /// Adds what something else needs.
    pub(super) fn extend(&mut self, other: Self) {
        self.rights.extend(other.rights);
        self.later.extend(other.later);
        self.open.extend(other.open);
        self.makes.extend(other.makes);
    }
}

/// What one document needs. What is not known is said, and not asked for: it may not be needed.
pub(super) fn of_document(
    frame: &Frame<'_>,
    via: &Via,
    deed: ObjectAccess,
    document: &Value,
    field: &str,
) -> ActionRights {
    let text = |path: &str| document.pointer(path).and_then(Value::as_str);
    let fixed = |path: &str| text(path).filter(|text| !sketch::has_holes(text));
    let open = |what: &str| ActionRights {
        open: vec![format!("{field}: {what} is unknown until it is rendered, and so are the rights for it")],
        ..ActionRights::default()
    };
    let (Some(version), Some(word)) = (fixed("/apiVersion"), fixed("/kind")) else {
        return open("the kind of a document");
    };
    let name = fixed("/metadata/name").map(str::to_owned);
    let kind = match frame.kinds.resolve(via, &KindWord::from_manifest(Some(version), word)) {
        Ok(KindMeaning::Known(kind)) => kind,
        // The kind is being asked for; the plan is made again with the answer.
        Ok(KindMeaning::Open(_)) | Err(_) => return ActionRights::default(),
    };
    let namespace = match text("/metadata/namespace") {
        None => Some(frame.owner.namespace.clone()),
        Some(namespace) if sketch::has_holes(namespace) && kind.namespaced => {
            return open(&format!("the namespace of a {}", kind.gvk.kind));
        }
        Some(namespace) => Some(namespace.to_owned()),
    };
    let made = name.clone().map(|name| ObjectRef {
        kind: kind.gvk.group_kind(),
        namespace: namespace.clone().filter(|_| kind.namespaced),
        name,
    });
    let needed = |deed| rights::changing(deed, &kind.resource(), namespace.as_ref(), name.as_ref());
    let later = if frame.tracked { needed(ObjectAccess::Remove) } else { Vec::new() };
    ActionRights { rights: needed(deed), later, open: Vec::new(), makes: made.into_iter().collect() }
}
