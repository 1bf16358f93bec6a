//! The manifest of an artifact: which of its layers is used.

use linchpin_words::{Reason, limits, text::quote};
use serde::Deserialize;

use crate::{Problem, digest::Digest};

/// The manifests that are understood, as an Accept header.
pub(super) const ACCEPTED: &str =
    "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json";

/// The layers that are used without being named, the first that is there.
const USUAL: [&str; 2] =
    ["application/vnd.cncf.flux.content.v1.tar+gzip", "application/vnd.oci.image.layer.v1.tar+gzip"];

/// A layer of an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// What it is.
    pub media_type: String,
    /// What it is called.
    pub digest: Digest,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    #[serde(default)]
    manifests: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    #[serde(default)]
    media_type: String,
    digest: String,
    #[serde(default)]
    size: u64,
}

/// The layer of a manifest that is used: the one of `media_type`, else the first usual one.
pub fn layer(manifest: &[u8], media_type: Option<&str>) -> Result<Layer, Problem> {
    let read: Manifest = serde_json::from_slice(manifest)
        .map_err(|_| Problem::invalid_archive("the registry answers something else than a manifest"))?;
    if read.manifests.is_some() {
        let message = "the artifact is an index of several; name one of them by its digest";
        return Err(Problem::new(Reason::SourceUnsupported, message));
    }
    let wanted: Vec<&str> = media_type.map_or_else(|| USUAL.to_vec(), |media_type| vec![media_type]);
    let mut of_type =
        wanted.iter().filter_map(|wanted| read.layers.iter().find(|layer| layer.media_type == *wanted));
    let Some(found) = of_type.next() else {
        let mut there: Vec<String> = read.layers.iter().map(|layer| quote(&layer.media_type)).collect();
        there.truncate(8);
        let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
        let message = format!("the artifact has no layer of {} (it has: {there})", wanted.join(" or "));
        return Err(Problem::new(Reason::SourceUnsupported, message));
    };
    if found.size > u64::try_from(limits::SOURCE_DOWNLOAD).unwrap_or(u64::MAX) {
        let limit = limits::SOURCE_DOWNLOAD >> 20;
        return Err(Problem::too_large(format!("the layer of the artifact is larger than {limit} MiB")));
    }
    let digest = Digest::parse(&found.digest)
        .ok_or_else(|| Problem::invalid_archive("the layer of the artifact has no SHA-256 digest"))?;
    Ok(Layer { media_type: found.media_type.clone(), digest })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(layers: &[(&str, &str)]) -> Vec<u8> {
        let layers: Vec<_> = layers
            .iter()
            .map(|(media, digest)| serde_json::json!({"mediaType": media, "digest": digest, "size": 3}))
            .collect();
        serde_json::to_vec(&serde_json::json!({"schemaVersion": 2, "layers": layers})).unwrap()
    }

    #[test]
    fn the_layer_asked_for_is_used_else_the_first_usual_one() {
        let (a, b, c) = (Digest::of(b"a"), Digest::of(b"b"), Digest::of(b"c"));
        let given = manifest(&[("x/y", a.as_str()), (USUAL[1], b.as_str()), (USUAL[0], c.as_str())]);
        assert_eq!(layer(&given, None).unwrap().digest, c);
        assert_eq!(layer(&given, Some("x/y")).unwrap().digest, a);
        let problem = layer(&given, Some("z")).unwrap_err();
        assert_eq!(problem.reason, Reason::SourceUnsupported);
        assert!(problem.message.contains("x/y"), "{problem}");
    }

    #[test]
    fn what_is_no_manifest_is_refused() {
        let cases: [(&[u8], Reason); 6] = [
            (b"", Reason::ArchiveInvalid),
            (b"<html>", Reason::ArchiveInvalid),
            (b"3", Reason::ArchiveInvalid),
            (br#"{"manifests":[]}"#, Reason::SourceUnsupported),
            (br#"{"layers":[]}"#, Reason::SourceUnsupported),
            (
                br#"{"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":"md5:1","size":1}]}"#,
                Reason::ArchiveInvalid,
            ),
        ];
        for (given, reason) in cases {
            assert_eq!(layer(given, None).unwrap_err().reason, reason, "{}", String::from_utf8_lossy(given));
        }
        let large = br#"{"layers":[{"mediaType":"a","digest":"x","size":10485761}]}"#;
        assert_eq!(layer(large, Some("a")).unwrap_err().reason, Reason::TooLarge);
    }

    #[test]
    fn a_manifest_nested_without_end_is_refused() {
        let deep = format!(r#"{{"layers":[],"config":{}}}"#, "[".repeat(100_000));
        assert_eq!(layer(deep.as_bytes(), None).unwrap_err().reason, Reason::ArchiveInvalid);
    }
}
