//! The journal in an object's status: one text.
//!
//! Written out as an object it would be most of what is to be decoded, copied, compared and validated whenever anybody
//! writes to the object, field by field and several times over; as a text it costs the API server next to nothing.
//! Journals that were written as objects are still read.
//!
//! Where many objects begin at once, the first one is written with the finalizer, as an annotation: one write instead of
//! two before the first effect. As soon as there is one in the status, that is the one that counts. It is packed, because
//! it is there for a moment only and everybody who watches metadata is sent it.
//!
//! A user who may write a status or an annotation may write a journal. So a journal orders nothing that the spec could not:
//! it says what was done and where, never as whom, and what it says to be made is deleted only if it carries our mark.
//!
//! A journal names the form it is written in: one of a newer version is neither read nor overwritten. What can be read of
//! one that as a whole cannot is [`salvaged`](salvage) when the object goes.

use std::io::{Read, Write};

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use linchpin_api::{OurStatus, Ours};
use linchpin_engine::{
    contract::{EffectTarget, StepId},
    journal::{InventoryItem, Journal, StepRecord},
    plan::SpecError,
};
use linchpin_words::{keys, limits};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::errors::at;

/// The field that holds the text.
const TEXT: &str = "text";
/// The field that holds a long text, deflated.
const PACKED: &str = "packed";
/// What is longer is packed: an object has to fit into the store with all that it says.
const LONG: usize = 64 * 1024;
/// The form that is written, and the newest that is read. The first one had no name; it said as whom objects were made.
const FORM: u32 = 2;
const TOO_LARGE: &str = "it is larger than any that the operator writes, so it is not read and what was done is not known; \
     remove it to begin anew";
const UNREADABLE: &str = "it cannot be read, so what was done is not known; remove it to begin anew";

/// The first journal in an annotation, of the object with this uid; none where it is another object's.
///
/// # Errors
/// One that cannot be read.
pub fn read_first(text: &str, uid: &str) -> Result<Option<Journal>, SpecError> {
    let field = format!("metadata.annotations[{}]", keys::FIRST_JOURNAL);
    let journal = unpack(text).ok_or_else(|| UNREADABLE.to_owned()).and_then(|text| parse(&text));
    let journal = journal.map_err(|problem| at(&field, problem))?;
    Ok((journal.uid == uid).then_some(journal))
}

/// The first journal of an object, as an annotation holds it; none where it could not be read again.
pub fn write_first(journal: &Journal) -> Option<String> {
    pack(&text(journal)?)
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

/// The journal in a status, of the object with this uid; none where there is none, or another object's.
///
/// # Errors
/// One that cannot be read: forgetting what was done could do it twice.
pub fn read(journal: Option<&Value>, uid: &str) -> Result<Option<Journal>, SpecError> {
    let Some(value) = journal else {
        return Ok(None);
    };
    let journal = parse(&bytes(value)).map_err(|problem| at("status.journal", problem))?;
    Ok((journal.uid == uid).then_some(journal))
}

/// The journal in an object's status; none where there is none of this very object.
///
/// # Errors
/// One that cannot be read.
pub fn of<O: Ours>(object: &O) -> Result<Option<Journal>, SpecError> {
    let journal = object.status().and_then(|status| status.common().journal.as_ref());
    read(journal, object.meta().uid.as_deref().unwrap_or_default())
}

/// What an object made, as far as that can be read of a journal in its status or in its annotation that as a whole cannot;
/// and whether that may not be all.
pub fn salvage(journal: Option<&Value>, first: Option<&str>, uid: &str) -> (Vec<InventoryItem>, bool) {
    let text = journal.map(bytes).or_else(|| unpack(first?));
    let text = text.filter(|text| text.len() <= limits::JOURNAL_BYTES);
    let Some(value) = text.and_then(|text| serde_json::from_slice::<Value>(&text).ok()) else {
        return (Vec::new(), journal.is_some() || first.is_some());
    };
    if value.get("uid").and_then(Value::as_str) != Some(uid) {
        return (Vec::new(), value.get("uid").is_none());
    }
    let rows = value.get("inventory").and_then(Value::as_array).cloned().unwrap_or_default();
    let count = rows.len();
    let items = rows.into_iter().take(limits::JOURNAL_ENTRIES);
    let items = items.filter_map(|row| serde_json::from_value(row).ok());
    let mut room = limits::JOURNAL_ENTRIES;
    let items: Vec<InventoryItem> = items.filter(|item| has_room(item, &mut room)).collect();
    let partial = items.len() < count || form(&value) > FORM;
    (items, partial)
}

/// The journal as a status holds it.
pub fn write(journal: &Journal) -> Option<Value> {
    let text = text(journal)?;
    let packed = if text.len() > LONG { pack(&text) } else { None };
    Some(packed.map_or_else(|| json!({ TEXT: text }), |packed| json!({ PACKED: packed })))
}

/// A journal with the form it is written in.
#[derive(Serialize)]
struct Written<'a> {
    form: u32,
    #[serde(flatten)]
    journal: &'a Journal,
}

fn text(journal: &Journal) -> Option<String> {
    serde_json::to_string(&Written { form: FORM, journal }).ok()
}

/// The text of a journal, also of one that was written as an object.
fn bytes(value: &Value) -> Vec<u8> {
    let packed = value.get(PACKED).and_then(Value::as_str).and_then(unpack);
    if let Some(unpacked) = packed {
        return unpacked;
    }
    match value.get(TEXT) {
        Some(Value::String(text)) => text.clone().into_bytes(),
        _ => value.to_string().into_bytes(),
    }
}

/// Reads the text of a journal, or says why that cannot be done.
fn parse(text: &[u8]) -> Result<Journal, String> {
    #[derive(Deserialize)]
    struct Head {
        #[serde(default)]
        form: u32,
    }
    let unreadable = |_| UNREADABLE.to_owned();
    if text.len() > limits::JOURNAL_BYTES {
        return Err(TOO_LARGE.to_owned());
    }
    let Head { form } = serde_json::from_slice(text).map_err(unreadable)?;
    if form > FORM {
        return Err(format!(
            "it was written by a newer version of the operator (form {form}, this one reads up to {FORM}); nothing is \
             done until that version runs again, but the object can be deleted"
        ));
    }
    let journal = serde_json::from_slice(text).map_err(unreadable)?;
    if is_bounded(&journal) { Ok(journal) } else { Err(TOO_LARGE.to_owned()) }
}

/// Whether a journal is no larger than one that we write: a user who may write a status may write any.
fn is_bounded(journal: &Journal) -> bool {
    let mut room = limits::JOURNAL_ENTRIES;
    let mut record = |(id, record): (&StepId, &StepRecord)| {
        take(&mut room, 1 + record.wrote.len() + record.triggers.len())
            && is_short(id.as_str())
            && is_short(&record.definition)
            && record.wrote.iter().all(|wrote| is_plain(&wrote.target) && is_short(&wrote.stamp.uid))
            && record.triggers.keys().all(|dependency| is_short(dependency.as_str()))
    };
    journal.steps.iter().all(|(id, one)| record((id, one)))
        && journal.inventory.iter().all(|item| has_room(item, &mut room))
        && take(&mut room, journal.kinds.len())
}

/// Whether a row is short enough, and there is room for it.
fn has_room(item: &InventoryItem, room: &mut usize) -> bool {
    take(room, 1 + item.after.len())
        && is_short(item.step.as_str())
        && is_plain(&item.target)
        && item.uid.as_deref().is_none_or(is_short)
        && item.after.iter().all(|step| is_short(step.as_str()))
}

fn take(room: &mut usize, entries: usize) -> bool {
    let left = room.checked_sub(entries);
    *room = left.unwrap_or_default();
    left.is_some()
}

fn is_plain(target: &EffectTarget) -> bool {
    let EffectTarget { kind, namespace, name } = target;
    let parts =
        [Some(&kind.word), kind.group.as_ref(), kind.version.as_ref(), namespace.as_ref(), Some(name)];
    parts.into_iter().flatten().all(|text| is_short(text))
}

fn is_short(text: &str) -> bool {
    text.len() <= limits::JOURNAL_TEXT
}

fn form(value: &Value) -> u32 {
    value.get("form").and_then(Value::as_u64).and_then(|form| u32::try_from(form).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use linchpin_engine::contract::{ClusterRef, RemoteUser};
    use linchpin_words::{Shared, Timestamp};

    use super::*;

    /// The journal of the object `u`, which is about to make something, with this said of where.
    fn about_to_make(place: &Value) -> Journal {
        let mut journal = Journal::new("u", 1, Timestamp::from_microsecond(0));
        let kind = json!({"word": "configmap", "group": "", "version": "v1"});
        let target = json!({"kind": kind, "namespace": "shop", "name": "a"});
        let mut item = json!({"step": "a", "target": target, "state": "Intended"});
        item.as_object_mut().unwrap().extend(place.as_object().unwrap().clone());
        journal.inventory.push(serde_json::from_value(item).unwrap());
        journal
    }

    #[test]
    fn a_first_journal_is_read_as_it_was_written_and_by_its_own_object_only() {
        let journal = about_to_make(&json!({}));
        let text = write_first(&journal).unwrap();
        assert_eq!(read_first(&text, "u").unwrap(), Some(journal));
        assert_eq!(read_first(&text, "another").unwrap(), None);
        for unreadable in ["{", "", "no base64!", "AAAA", &pack("{").unwrap()] {
            assert!(read_first(unreadable, "u").is_err(), "forgetting what was done could do it twice");
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
    fn a_journal_that_is_larger_than_any_we_write_is_not_read_and_what_it_made_is_salvaged_within_bounds() {
        let row = about_to_make(&json!({})).inventory[0].clone();
        let record = || Shared::new(StepRecord::new("", Timestamp::from_microsecond(0)));
        let rows = |count: usize| {
            let mut journal = about_to_make(&json!({}));
            journal.inventory = Shared::new(vec![row.clone(); count]);
            journal
        };
        let records = |count: usize| {
            let mut journal = about_to_make(&json!({}));
            journal.inventory = Shared::default();
            journal.steps = Shared::new((0..count).map(|n| (StepId::new(n.to_string()), record())).collect());
            journal
        };
        let listed = |count: usize| {
            let mut journal = about_to_make(&json!({}));
            let row = InventoryItem { after: vec![StepId::new("a"); count - 1], ..row.clone() };
            journal.inventory = Shared::new(vec![row]);
            journal
        };
        let named = |length: usize| {
            let mut journal = about_to_make(&json!({}));
            let mut row = row.clone();
            row.target.name = "n".repeat(length);
            journal.inventory = Shared::new(vec![row]);
            journal
        };
        let forms: [(&dyn Fn(usize) -> Journal, usize); 4] = [
            (&rows, limits::JOURNAL_ENTRIES),
            (&records, limits::JOURNAL_ENTRIES),
            (&listed, limits::JOURNAL_ENTRIES),
            (&named, limits::JOURNAL_TEXT),
        ];
        for (index, (form, limit)) in forms.into_iter().enumerate() {
            assert!(is_bounded(&form(limit)), "{index}: at the limit");
            for over in [limit + 1, limit * 100] {
                let journal = form(over);
                assert!(!is_bounded(&journal), "{index}: {over}");
                if over > limit + 1 {
                    continue;
                }
                let status = write(&journal);
                assert!(read(status.as_ref(), "u").is_err(), "{index}: {over}");
                let (items, partial) = salvage(status.as_ref(), None, "u");
                assert!(items.len() <= limits::JOURNAL_ENTRIES, "{index}: {over}");
                assert!(partial || journal.inventory.is_empty(), "{index}: {over}");
            }
        }
        let padded = |bytes: usize| {
            let text = text(&about_to_make(&json!({}))).unwrap();
            json!({TEXT: format!("{text}{}", " ".repeat(bytes - text.len()))})
        };
        assert!(read(Some(&padded(limits::JOURNAL_BYTES)), "u").is_ok());
        for over in [limits::JOURNAL_BYTES + 1, limits::JOURNAL_BYTES * 100] {
            assert!(read(Some(&padded(over)), "u").unwrap_err().to_string().contains("larger than any"));
            assert_eq!(salvage(Some(&padded(over)), None, "u"), (Vec::new(), true));
        }
    }

    #[test]
    fn a_journal_says_where_something_was_made_and_never_as_whom() {
        let secret = json!({"namespace": "shop", "name": "edge", "key": "", "impersonate": {"user": "admin", "groups": []}});
        let anybody = json!({"serviceAccount": {"namespace": "kube-system", "name": "admin"}});
        let place = ClusterRef::Kubeconfig {
            namespace: "shop".to_owned(),
            name: "edge".to_owned(),
            key: String::new(),
            impersonate: None,
        };
        for (said, expected) in [
            (json!({"via": {"actor": "operator"}}), ClusterRef::Here),
            (json!({"via": {"actor": anybody}}), ClusterRef::Here),
            (json!({"via": {"actor": anybody, "cluster": {"kubeconfig": secret}}}), place.clone()),
            (json!({"place": {"kubeconfig": secret}}), place.clone()),
        ] {
            let journal = about_to_make(&said);
            assert_eq!(journal.inventory[0].place, expected);
            let text = text(&journal).unwrap();
            assert!(!text.contains("actor") && !text.contains("admin"), "{text}");
        }
        let impersonate = Some(RemoteUser { user: "admin".to_owned(), groups: Vec::new() });
        let ClusterRef::Kubeconfig { namespace, name, key, .. } = place.clone() else { unreachable!() };
        assert_eq!(ClusterRef::Kubeconfig { namespace, name, key, impersonate }.place(), place);
    }

    #[test]
    fn a_journal_of_a_newer_version_is_not_read_but_what_it_made_can_be_told() {
        let mut newer: Value = serde_json::from_str(&text(&about_to_make(&json!({}))).unwrap()).unwrap();
        newer["form"] = json!(FORM + 1);
        let odd = json!({"step": "b", "state": "Beamed"});
        newer["inventory"].as_array_mut().unwrap().push(odd);
        let status = json!({TEXT: newer.to_string()});
        let error = read(Some(&status), "u").unwrap_err().to_string();
        assert!(error.contains("newer version"), "{error}");
        let (items, partial) = salvage(Some(&status), None, "u");
        assert_eq!((items.len(), partial), (1, true));
        assert_eq!(salvage(Some(&status), None, "another"), (Vec::new(), false));
        assert_eq!(salvage(Some(&json!({TEXT: "{"})), None, "u"), (Vec::new(), true));
    }
}
