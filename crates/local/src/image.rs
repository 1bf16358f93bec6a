//! Container images packed by hand: a program that needs nothing but itself is an image of one layer.
//!
//! The result is an OCI layout in a tar file, as containerd imports it. Nothing is compressed: it only travels from
//! one directory to the next.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{
    error::{Error, Result},
    paths::hexadecimal,
};

/// An image of static programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its full name, such as `localhost/workload:1`. Pods name it with `imagePullPolicy: Never` (or `IfNotPresent`).
    pub name: String,
    /// The programs: where each lies in the image, and where it lies here.
    pub programs: Vec<(String, PathBuf)>,
    /// What a container runs unless configured otherwise.
    pub entrypoint: Vec<String>,
    /// What registries show of it, by OCI's own keys.
    pub labels: BTreeMap<String, String>,
}

impl Image {
    /// An image of one program, put at the root under its own name, that is what a container runs.
    pub fn of(name: impl Into<String>, program: &Path) -> Self {
        let inside = format!("/{}", program.file_name().unwrap_or_default().to_string_lossy());
        Self {
            name: name.into(),
            programs: vec![(inside.clone(), program.to_owned())],
            entrypoint: vec![inside],
            labels: BTreeMap::new(),
        }
    }

    /// Writes the image into a tar file.
    pub fn write(&self, file: &Path) -> Result<()> {
        fs::write(file, self.pack()?).map_err(Error::io("writing", file))
    }

    /// The image as a tar file.
    pub(crate) fn pack(&self) -> Result<Vec<u8>> {
        let mut layer = Tar::default();
        layer.directory("tmp/", 0o1777);
        for (inside, path) in &self.programs {
            let content = fs::read(path).map_err(Error::io("reading", path))?;
            layer.file(inside.trim_start_matches('/'), 0o755, &content);
        }
        let layer = layer.finish();
        let mut config = json!({
            "architecture": architecture(),
            "os": "linux",
            "config": { "Entrypoint": self.entrypoint, "WorkingDir": "/", "User": "65532:65532" },
            "rootfs": { "type": "layers", "diff_ids": [digest(&layer)] },
        });
        if !self.labels.is_empty() {
            config["config"]["Labels"] = json!(self.labels);
        }
        let config = config.to_string().into_bytes();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
            "layers": [descriptor("application/vnd.oci.image.layer.v1.tar", &layer)],
        });
        let manifest = manifest.to_string().into_bytes();
        let mut listed = descriptor("application/vnd.oci.image.manifest.v1+json", &manifest);
        listed["annotations"] = json!({ "io.containerd.image.name": self.name });
        let index = json!({ "schemaVersion": 2, "manifests": [listed] }).to_string();
        let mut tar = Tar::default();
        tar.file("oci-layout", 0o644, br#"{"imageLayoutVersion":"1.0.0"}"#);
        tar.file("index.json", 0o644, index.as_bytes());
        for blob in [&layer, &config, &manifest] {
            tar.file(&format!("blobs/sha256/{}", &digest(blob)["sha256:".len()..]), 0o644, blob);
        }
        Ok(tar.finish())
    }
}

/// Whether a file is a program that needs no loader and no libraries of its machine: it runs in an image of its own.
pub fn is_static(program: &Path) -> bool {
    fs::read(program).is_ok_and(|bytes| has_no_interpreter(&bytes).unwrap_or(false))
}

/// Whether a 64-bit little-endian ELF file names no loader (`PT_INTERP`); none for anything else.
fn has_no_interpreter(bytes: &[u8]) -> Option<bool> {
    const INTERPRETER: u32 = 3;
    if !bytes.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let short = |at: usize| Some(usize::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    let start = usize::try_from(u64::from_le_bytes(bytes.get(32..40)?.try_into().ok()?)).ok()?;
    let (size, count) = (short(54)?, short(56)?);
    for index in 0..count {
        let at = start.checked_add(index.checked_mul(size)?)?;
        let kind = u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?);
        if kind == INTERPRETER {
            return Some(false);
        }
    }
    Some(true)
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn digest(blob: &[u8]) -> String {
    format!("sha256:{}", hexadecimal(&Sha256::digest(blob)))
}

fn descriptor(media_type: &str, blob: &[u8]) -> Value {
    json!({ "mediaType": media_type, "digest": digest(blob), "size": blob.len() })
}

/// A tar file in the making, in the `ustar` format.
#[derive(Default)]
struct Tar(Vec<u8>);

impl Tar {
    const BLOCK: usize = 512;

    fn file(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.header(name, mode, content.len(), b'0');
        self.0.extend_from_slice(content);
        self.pad();
    }

    fn directory(&mut self, name: &str, mode: u32) {
        self.header(name, mode, 0, b'5');
    }

    fn header(&mut self, name: &str, mode: u32, size: usize, kind: u8) {
        let mut header = [0_u8; Self::BLOCK];
        let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
        // Owner and time are fixed: the same programs always make the same image.
        put(0, &name[..name.len().min(100)]);
        put(100, &format!("{mode:07o}"));
        put(108, "0000000");
        put(116, "0000000");
        put(124, &format!("{size:011o}"));
        put(136, "00000000000");
        put(148, "        ");
        put(257, "ustar\0");
        put(263, "00");
        header[156] = kind;
        let sum: u32 = header.iter().copied().map(u32::from).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        self.0.extend_from_slice(&header);
    }

    fn pad(&mut self) {
        self.0.resize(self.0.len().next_multiple_of(Self::BLOCK), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 2 * Self::BLOCK, 0);
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn only_a_whole_program_without_a_loader_is_static() {
        // A header with one program header behind it.
        let elf = |kind: u32| {
            let mut bytes = b"\x7fELF\x02\x01".to_vec();
            bytes.resize(64, 0);
            bytes[32] = 64;
            (bytes[54], bytes[56]) = (56, 1);
            bytes.extend_from_slice(&kind.to_le_bytes());
            bytes.resize(64 + 56, 0);
            bytes
        };
        assert_eq!(has_no_interpreter(&elf(1)), Some(true));
        assert_eq!(has_no_interpreter(&elf(3)), Some(false));
        assert_eq!(has_no_interpreter(&elf(1)[..66]), None, "cut off");
        assert_eq!(has_no_interpreter(b"#!/bin/sh"), None);
        let mut far = elf(1);
        far[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(has_no_interpreter(&far), None, "nowhere");
        assert!(!is_static(Path::new("/nonexistent")));
        assert!(!is_static(&std::env::current_exe().unwrap()), "tests are linked with libraries");
    }

    #[test]
    fn an_image_is_a_tar_that_tar_reads_and_its_blobs_are_what_their_names_say() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("hello");
        fs::write(&program, "not really a program").unwrap();
        let labels = BTreeMap::from([("org.opencontainers.image.version".to_owned(), "1".to_owned())]);
        let packed = Image { labels, ..Image::of("localhost/hello:1", &program) }.pack().unwrap();
        let path = dir.path().join("image.tar");
        fs::write(&path, &packed).unwrap();
        let unpacked = dir.path().join("unpacked");
        fs::create_dir(&unpacked).unwrap();
        let tar = |file: &Path| Command::new("tar").arg("-C").arg(&unpacked).arg("-xf").arg(file).status();
        assert!(tar(&path).unwrap().success());
        let read = |path: &str| -> Value {
            serde_json::from_slice(&fs::read(unpacked.join(path)).unwrap()).unwrap()
        };
        let index = read("index.json");
        assert_eq!(index["manifests"][0]["annotations"]["io.containerd.image.name"], "localhost/hello:1");
        let blob = |descriptor: &Value| {
            let named = descriptor["digest"].as_str().unwrap().to_owned();
            let path = format!("blobs/{}", named.replace(':', "/"));
            let content = fs::read(unpacked.join(&path)).unwrap();
            assert_eq!(digest(&content), named);
            assert_eq!(descriptor["size"], content.len());
            path
        };
        let manifest = read(&blob(&index["manifests"][0]));
        let config = read(&blob(&manifest["config"]));
        assert_eq!(config["config"]["Entrypoint"], json!(["/hello"]));
        assert_eq!(config["config"]["Labels"], json!({"org.opencontainers.image.version": "1"}));
        let layer = blob(&manifest["layers"][0]);
        assert!(tar(&unpacked.join(layer)).unwrap().success());
        assert_eq!(fs::read_to_string(unpacked.join("hello")).unwrap(), "not really a program");
    }
}
