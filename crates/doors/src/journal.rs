//! The journal in an object's status: one text.
//!
//! Written out as an object it would be most of what is to be decoded, copied, compared and validated whenever anybody
//! writes to the object, field by field and several times over; as a text it costs the API server next to nothing.
//! Journals that were written as objects are still read.
//!
//! Where many objects begin at once, the first one is written with the finalizer, as an annotation: one write instead of
//! two before the first effect. As soon as there is one in the status, that is the one that counts. It is packed, because
//! it is there for a moment only and everybody who watches metadata is sent it.

use std::io::{Read, Write};

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use linchpin_engine::{contract::Actor, journal::Journal, plan::SpecError};
use linchpin_words::{keys, limits};
use serde_json::{Value, json};

use crate::errors::at;

/// The field that holds the text.
const TEXT: &str = "text";
const UNREADABLE: &str = "it cannot be read, so what was done is not known; remove it to begin anew";

/// The first journal in an annotation, of the object with this uid in this namespace; none where it is another object's.
///
/// Whoever may change an object may also write its annotations, unlike its status. So a first journal can order nothing
/// that the spec could not: everything in it is done here, as a ServiceAccount of the object's own namespace.
///
/// # Errors
/// One that cannot be read, or that names another identity.
pub fn read_first(text: &str, uid: &str, namespace: &str) -> Result<Option<Journal>, SpecError> {
    let field = format!("metadata.annotations[{}]", keys::FIRST_JOURNAL);
    let journal = unpack(text).and_then(|journal| serde_json::from_slice::<Journal>(&journal).ok());
    let journal = journal.ok_or_else(|| at(&field, UNREADABLE))?;
    if journal.uid != uid {
        return Ok(None);
    }
    if !is_at_home(&journal, namespace) {
        return Err(at(&field, "it names an identity that this object does not have; remove it to go on"));
    }
    Ok(Some(journal))
}

/// The first journal of an object in this namespace, as an annotation holds it; none where it could not be read again.
pub fn write_first(journal: &Journal, namespace: &str) -> Option<String> {
    is_at_home(journal, namespace).then(|| pack(&text(journal)?)).flatten()
}

/// Deflated, in base64; none where it could not be unpacked again.
fn pack(text: &str) -> Option<String> {
    if text.len() > limits::DOCUMENT {
        return None;
    }
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).ok()?;
    Some(STANDARD_NO_PAD.encode(encoder.finish().ok()?))
}

/// What was packed; none where it was not, or is larger than any journal: a few bytes can be made to unfold to gigabytes.
fn unpack(text: &str) -> Option<Vec<u8>> {
    let packed = STANDARD_NO_PAD.decode(text).ok()?;
    let mut unpacked = Vec::new();
    let limit = limits::DOCUMENT as u64;
    let read = DeflateDecoder::new(packed.as_slice()).take(limit + 1).read_to_end(&mut unpacked).ok()?;
    (read <= limits::DOCUMENT).then_some(unpacked)
}

/// Whether all of the inventory is made here, as ServiceAccounts of this namespace.
fn is_at_home(journal: &Journal, namespace: &str) -> bool {
    journal.inventory.iter().all(|item| {
        let own =
            |actor: &Actor| matches!(actor, Actor::ServiceAccount { namespace: of, .. } if of == namespace);
        item.via.cluster.is_here() && own(&item.via.actor)
    })
}

/// The journal in a status, of the object with this uid; none where there is none, or another object's.
///
/// One that cannot be read is an error and not none: forgetting what was done could do it twice.
pub(crate) fn read(journal: Option<&Value>, uid: &str) -> Result<Option<Journal>, SpecError> {
    let Some(value) = journal else {
        return Ok(None);
    };
    let journal: Result<Journal, _> = match value.get(TEXT) {
        Some(Value::String(text)) => serde_json::from_str(text),
        _ => serde_json::from_value(value.clone()),
    };
    let journal = journal.map_err(|_| at("status.journal", UNREADABLE))?;
    Ok((journal.uid == uid).then_some(journal))
}

/// The journal as a status holds it.
pub(crate) fn write(journal: &Journal) -> Option<Value> {
    text(journal).map(|text| json!({ TEXT: text }))
}

fn text(journal: &Journal) -> Option<String> {
    serde_json::to_string(journal).ok()
}

#[cfg(test)]
mod tests {
    use linchpin_engine::contract::{ClusterRef, Via};
    use linchpin_words::Timestamp;

    use super::*;

    /// The journal of the object `u`, which is about to make something by this way.
    fn about_to_make(via: &Via) -> Journal {
        let mut journal = Journal::new("u", 1, Timestamp::from_microsecond(0));
        let kind = json!({"word": "configmap", "group": "", "version": "v1"});
        let target = json!({"kind": kind, "namespace": "shop", "name": "a"});
        let item = json!({"step": "a", "via": via, "target": target, "state": "Intended"});
        journal.inventory.push(serde_json::from_value(item).unwrap());
        journal
    }

    #[test]
    fn a_first_journal_is_read_as_it_was_written_and_by_its_own_object_only() {
        let journal = about_to_make(&Via::service_account("shop", "builder"));
        let text = write_first(&journal, "shop").unwrap();
        assert_eq!(read_first(&text, "u", "shop").unwrap(), Some(journal));
        assert_eq!(read_first(&text, "another", "shop").unwrap(), None);
        for unreadable in ["{", "", "no base64!", "AAAA", &pack("{").unwrap()] {
            assert!(
                read_first(unreadable, "u", "shop").is_err(),
                "forgetting what was done could do it twice"
            );
        }
    }

    #[test]
    fn what_unfolds_to_more_than_any_journal_is_not_read() {
        let text = |size: usize| format!("{{\"uid\": \"{}\"", "u".repeat(size));
        let largest = pack(&text(limits::DOCUMENT - 10)).unwrap();
        assert!(unpack(&largest).is_some(), "{} bytes", largest.len());
        assert_eq!(pack(&text(limits::DOCUMENT)), None);
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&vec![b' '; 64 * limits::DOCUMENT]).unwrap();
        let bomb = STANDARD_NO_PAD.encode(encoder.finish().unwrap());
        assert!(bomb.len() < 256 * 1024, "it would fit into an annotation");
        assert_eq!(unpack(&bomb), None);
    }

    #[test]
    fn whoever_writes_annotations_gains_nobody_elses_rights() {
        let operator = Via { cluster: ClusterRef::Here, actor: Actor::Operator };
        for via in [operator, Via::service_account("kube-system", "builder")] {
            let forged = about_to_make(&via);
            assert_eq!(write_first(&forged, "shop"), None);
            let forged = pack(&text(&forged).unwrap()).unwrap();
            assert_eq!(
                read_first(&forged, "another", "shop").unwrap(),
                None,
                "what a copy brings along is no order"
            );
            let error = read_first(&forged, "u", "shop").unwrap_err();
            assert!(error.to_string().contains("an identity that this object does not have"), "{error}");
        }
    }
}
