//! The rights that writing a document needs, as far as it can be read before it is rendered.

use linchpin_engine::{
    contract::{Right, Via},
    rights::{self, Deed},
};
use linchpin_words::KindWord;
use serde_json::Value;

use crate::{assemble::Frame, kinds::Meaning, sketch};

/// The rights for one document. None where kind or namespace are not known: what may not be needed is not asked for.
pub(super) fn of_document(frame: &Frame<'_>, via: &Via, deed: Deed, document: &Value) -> Vec<Right> {
    let text = |path: &str| document.pointer(path).and_then(Value::as_str);
    let fixed = |path: &str| text(path).filter(|text| !sketch::has_holes(text));
    let (Some(version), Some(kind)) = (fixed("/apiVersion"), fixed("/kind")) else {
        return Vec::new();
    };
    let word = KindWord::from_manifest(Some(version), kind);
    let Ok(Meaning::Known(kind)) = frame.kinds.resolve(via, &word) else {
        return Vec::new();
    };
    let namespace = match text("/metadata/namespace") {
        None => Some(frame.owner.namespace.clone()),
        Some(namespace) if sketch::has_holes(namespace) && kind.namespaced => return Vec::new(),
        Some(namespace) => Some(namespace.to_owned()),
    };
    let name = fixed("/metadata/name").map(str::to_owned);
    rights::changing(deed, &kind.resource(), namespace.as_ref(), name.as_ref())
}
