//! What the certificate Secret holds, read and written.
//!
//! When things were made is in annotations: a certificate is renewed by the wall clock, and nothing here needs to read
//! one. A Secret that cannot be read, or that the API server would not believe, counts as none: new ones are made at once.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use linchpin_words::Timestamp;
use serde_json::{Value, json};

use super::server::certified;
use crate::certificates::{self, CertificateFault, CertificateStep, IssueError, StoredCertificates, inspect};

const AUTHORITY_MADE: &str = "linchpin.dev/ca-made-at";
const LEAF_MADE: &str = "linchpin.dev/certificate-made-at";
const NAMES: &str = "linchpin.dev/certificate-names";
const END: &str = "-----END CERTIFICATE-----";

/// Authorities, the server's certificate, and their keys.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Material {
    /// The authorities as PEM, the newest first.
    authorities: Vec<String>,
    authority_key: String,
    authority_made: Timestamp,
    pub(super) certificate: String,
    pub(super) key: String,
    leaf_made: Timestamp,
    names: Vec<String>,
}

impl Material {
    /// What a Secret holds; none where it is incomplete.
    pub(super) fn read(secret: &Value) -> Option<Self> {
        let data = |key: &str| -> Option<String> {
            let bytes = STANDARD.decode(secret["data"][key].as_str()?).ok()?;
            String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
        };
        let note = |key: &str| secret["metadata"]["annotations"][key].as_str();
        let bundle = data("ca.crt")?;
        let authorities: Vec<String> = bundle
            .split_inclusive(END)
            .filter(|part| part.contains(END))
            .map(|part| format!("{}\n", part.trim()))
            .collect();
        (!authorities.is_empty()).then_some(())?;
        Some(Self {
            authorities,
            authority_key: data("ca.key")?,
            authority_made: Timestamp::parse(note(AUTHORITY_MADE)?).ok()?,
            certificate: data("tls.crt")?,
            key: data("tls.key")?,
            leaf_made: Timestamp::parse(note(LEAF_MADE)?).ok()?,
            names: note(NAMES)?.split(',').map(str::to_owned).collect(),
        })
    }

    /// Whether it can be shown and is believed for its names. One whose time is over is renewed like any other.
    pub(super) fn is_usable(&self, now: Timestamp) -> bool {
        let bundle = self.bundle();
        certified(&self.certificate, &self.key).is_ok()
            && self.names.iter().all(|name| {
                let judged = inspect(&bundle, &self.certificate, name, now);
                matches!(judged, Ok(_) | Err(CertificateFault::Expired))
            })
    }

    /// The parts of a Secret that holds it.
    pub(super) fn write(&self) -> (BTreeMap<&'static str, String>, BTreeMap<&'static str, String>) {
        let data = BTreeMap::from([
            ("ca.crt", STANDARD.encode(self.bundle())),
            ("ca.key", STANDARD.encode(&self.authority_key)),
            ("tls.crt", STANDARD.encode(&self.certificate)),
            ("tls.key", STANDARD.encode(&self.key)),
        ]);
        let notes = BTreeMap::from([
            (AUTHORITY_MADE, self.authority_made.to_string()),
            (LEAF_MADE, self.leaf_made.to_string()),
            (NAMES, self.names.join(",")),
        ]);
        (data, notes)
    }

    /// What the configurations must name.
    pub(super) fn bundle(&self) -> String {
        self.authorities.concat()
    }

    /// What matters for its renewal.
    pub(super) fn stored(&self, names: &[String]) -> StoredCertificates {
        StoredCertificates {
            authorities: self.authorities.len(),
            authority_made: self.authority_made,
            leaf_made: self.leaf_made,
            names_match: self.names == names,
        }
    }

    /// The material after a step; the one there is where there is nothing to do.
    pub(super) fn after(
        current: Option<&Self>,
        step: CertificateStep,
        names: &[String],
        now: Timestamp,
    ) -> Result<Option<Self>, IssueError> {
        let Some(mut material) = current.cloned().filter(|_| step != CertificateStep::MakeAll) else {
            return if step == CertificateStep::MakeAll {
                Self::make(names, now).map(Some)
            } else {
                Ok(None)
            };
        };
        match step {
            CertificateStep::Rest(_) | CertificateStep::MakeAll => return Ok(None),
            CertificateStep::AddAuthority => {
                let new = certificates::authority(now)?;
                material.authorities.truncate(1);
                material.authorities.insert(0, new.certificate);
                material.authority_key = new.key;
                material.authority_made = now;
            }
            CertificateStep::SignLeaf => {
                // A key that cannot be read is as good as none.
                let Ok(new) = certificates::leaf(&material.authority_key, names, now) else {
                    return Self::make(names, now).map(Some);
                };
                material.certificate = new.certificate;
                material.key = new.key;
                material.leaf_made = now;
                material.names = names.to_vec();
            }
            CertificateStep::DropOld => material.authorities.truncate(1),
        }
        Ok(Some(material))
    }

    fn make(names: &[String], now: Timestamp) -> Result<Self, IssueError> {
        let authority = certificates::authority(now)?;
        let leaf = certificates::leaf(&authority.key, names, now)?;
        Ok(Self {
            authorities: vec![authority.certificate],
            authority_key: authority.key,
            authority_made: now,
            certificate: leaf.certificate,
            key: leaf.key,
            leaf_made: now,
            names: names.to_vec(),
        })
    }
}

/// The Secret's body; in the place of a stored one only if that is still at its version. A type cannot be changed, so the
/// stored one's stays.
pub(super) fn secret(
    name: &str,
    namespace: &str,
    stored: Option<&Value>,
    material: &Material,
    owner: Option<&OwnerReference>,
) -> Value {
    let (data, notes) = material.write();
    let stored_type = stored.and_then(|stored| stored["type"].as_str());
    let mut body = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": stored_type.unwrap_or("Opaque"),
        "metadata": {"name": name, "namespace": namespace, "annotations": notes},
        "data": data,
    });
    if let Some(stored) = stored {
        body["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
    }
    if let Some(owner) = owner {
        body["metadata"]["ownerReferences"] = json!([owner]);
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(day: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + day * 24 * 3600)
    }

    #[test]
    fn material_survives_its_secret_and_its_renewal() {
        let names = ["a.b.svc".to_owned()];
        let first = Material::after(None, CertificateStep::MakeAll, &names, now(0)).unwrap().unwrap();
        let read = |material: &Material| Material::read(&secret("s", "n", None, material, None)).unwrap();
        assert!(read(&first) == first);
        let two =
            Material::after(Some(&first), CertificateStep::AddAuthority, &names, now(250)).unwrap().unwrap();
        assert!(read(&two) == two);
        assert!(two.bundle().ends_with(&first.bundle()) && two.bundle() != first.bundle());
        assert!(two.certificate == first.certificate, "the server's certificate comes later");
        assert_eq!(two.stored(&names).authorities, 2);
        let swapped =
            Material::after(Some(&two), CertificateStep::SignLeaf, &names, now(250)).unwrap().unwrap();
        assert!(swapped.certificate != first.certificate && swapped.bundle() == two.bundle());
        let dropped =
            Material::after(Some(&swapped), CertificateStep::DropOld, &names, now(252)).unwrap().unwrap();
        assert!(two.bundle().starts_with(&dropped.bundle()) && dropped.stored(&names).authorities == 1);
        assert!(
            Material::after(Some(&first), CertificateStep::Rest(now(1)), &names, now(0)).unwrap().is_none()
        );
    }

    #[test]
    fn a_secret_that_somebody_broke_counts_as_none() {
        let names = ["a.b.svc".to_owned()];
        let material = Material::after(None, CertificateStep::MakeAll, &names, now(0)).unwrap().unwrap();
        let stored = json!({"metadata": {"resourceVersion": "7"}, "type": "kubernetes.io/tls"});
        let whole = secret("s", "n", Some(&stored), &material, None);
        assert_eq!(whole["metadata"]["resourceVersion"], "7");
        assert_eq!(whole["type"], "kubernetes.io/tls", "the API server lets nobody change it");
        for key in ["ca.crt", "ca.key", "tls.crt", "tls.key"] {
            for bad in [json!(null), json!("%"), json!(""), json!(7)] {
                let mut broken = whole.clone();
                broken["data"][key] = bad;
                assert!(Material::read(&broken).is_none(), "{key}");
            }
        }
        for key in [AUTHORITY_MADE, LEAF_MADE, NAMES] {
            let mut broken = whole.clone();
            broken["metadata"]["annotations"][key] = json!(null);
            assert!(Material::read(&broken).is_none(), "{key}");
        }
        // What is text and still nothing that the API server would believe.
        assert!(material.is_usable(now(0)) && material.is_usable(now(400)), "time is another matter");
        let other = Material::after(None, CertificateStep::MakeAll, &names, now(0)).unwrap().unwrap();
        let spoilers: [fn(&mut Material, &Material); 6] = [
            |broken, _| broken.certificate = "text".to_owned(),
            |broken, _| broken.key = "text".to_owned(),
            |broken, other| broken.certificate.clone_from(&other.certificate),
            |broken, other| broken.key.clone_from(&other.key),
            |broken, other| broken.authorities.clone_from(&other.authorities),
            |broken, _| broken.names = vec!["other.svc".to_owned()],
        ];
        for (number, spoil) in spoilers.into_iter().enumerate() {
            let mut broken = material.clone();
            spoil(&mut broken, &other);
            assert!(!broken.is_usable(now(0)), "spoiler {number}");
        }
        let mut broken = material.clone();
        broken.authority_key = "no key".to_owned();
        let again =
            Material::after(Some(&broken), CertificateStep::SignLeaf, &names, now(0)).unwrap().unwrap();
        assert!(again.bundle() != material.bundle(), "with a key that is none, everything is made anew");
    }
}
