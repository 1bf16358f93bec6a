//! Hostile archives, each refused with its reason, and honest ones, read as they are.

use std::io::{Cursor, Write};

use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use tar::{Builder, EntryType, Header};
use zip::{ZipWriter, write::SimpleFileOptions};

use super::*;

/// An entry of a tar, with its name as it is in the header.
fn raw_entry(builder: &mut Builder<Vec<u8>>, name: &[u8], kind: EntryType, content: &[u8]) {
    let mut header = Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    header.set_entry_type(kind);
    header.set_cksum();
    builder.append(&header, content).unwrap();
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A gzipped tar of entries.
fn tarball(entries: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (name, kind, content) in entries {
        raw_entry(&mut builder, name.as_bytes(), *kind, content);
    }
    gzip(&builder.into_inner().unwrap())
}

fn files(names: &[&str]) -> Vec<u8> {
    let entries: Vec<_> = names.iter().map(|name| (*name, EntryType::Regular, b"a: 1".as_slice())).collect();
    tarball(&entries)
}

fn zipped(names: &[&str]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for name in names {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(b"a: 1").unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn selection(paths: &[&str], strip: usize) -> ManifestSelection {
    let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
    ManifestSelection::new(&paths, strip).unwrap()
}

fn everything(bytes: &[u8]) -> Result<Vec<Manifest>, Problem> {
    unpack(bytes, &ManifestSelection::default())
}

fn paths(manifests: &[Manifest]) -> Vec<&str> {
    manifests.iter().map(|manifest| manifest.path.as_str()).collect()
}

#[track_caller]
fn refused(bytes: &[u8], reason: Reason) -> String {
    let problem = everything(bytes).expect_err("must be refused");
    assert_eq!(problem.reason, reason, "{problem}");
    problem.message
}

#[test]
fn an_entry_that_would_leave_the_archive_refuses_all_of_it() {
    for name in
        ["../a.yaml", "a/../../b.yaml", "/etc/a.yaml", "a\\..\\b.yaml", "C:/a.yaml", "c:a.yaml", "a/.."]
    {
        let message = refused(&files(&["good.yaml", name]), Reason::ArchiveUnsafe);
        assert!(message.contains("the name"), "{message}");
        refused(&zipped(&["good.yaml", name]), Reason::ArchiveUnsafe);
        let elsewhere = unpack(&files(&["good/a.yaml", name]), &selection(&["good"], 0)).unwrap_err();
        assert_eq!(elsewhere.reason, Reason::ArchiveUnsafe, "also outside of the paths: {name}");
    }
    let mut builder = Builder::new(Vec::new());
    raw_entry(&mut builder, b"a\xff.yaml", EntryType::Regular, b"");
    refused(&gzip(&builder.into_inner().unwrap()), Reason::ArchiveUnsafe);
}

#[test]
fn links_and_devices_are_refused_where_they_are_asked_for_and_nothing_elsewhere() {
    for kind in [EntryType::Link, EntryType::Symlink, EntryType::Char, EntryType::Block, EntryType::Fifo] {
        let bytes = tarball(&[("deploy/a.yaml", EntryType::Regular, b"a: 1"), ("docs/link", kind, b"")]);
        refused(&bytes, Reason::ArchiveUnsafe);
        let found = unpack(&bytes, &selection(&["deploy"], 0)).unwrap();
        assert_eq!(paths(&found), ["deploy/a.yaml"], "{kind:?}");
    }
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    writer.add_symlink("a.yaml", "/etc/passwd", SimpleFileOptions::default()).unwrap();
    refused(&writer.finish().unwrap().into_inner(), Reason::ArchiveUnsafe);
}

#[test]
fn a_bomb_is_stopped_while_it_is_read() {
    let zeros = vec![0; 60 << 20];
    let message = refused(&tarball(&[("big.bin", EntryType::Regular, &zeros)]), Reason::TooLarge);
    assert!(message.contains("50 MiB"), "{message}");
    let text = vec![b'a'; limits::YAML_SOURCE + 1];
    refused(&tarball(&[("big.yaml", EntryType::Regular, &text)]), Reason::TooLarge);
    let text = vec![b'a'; limits::YAML_SOURCE];
    let three = [("a.yaml", EntryType::Regular, text.as_slice()), ("b.yaml", EntryType::Regular, &text)];
    assert_eq!(everything(&tarball(&three)).unwrap().len(), 2, "exactly at the limit");
    let three = [three[0], three[1], ("c.yaml", EntryType::Regular, b"a".as_slice())];
    refused(&tarball(&three), Reason::TooLarge);
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    writer.start_file("big.yaml", SimpleFileOptions::default()).unwrap();
    writer.write_all(&vec![b'a'; 8 << 20]).unwrap();
    refused(&writer.finish().unwrap().into_inner(), Reason::TooLarge);
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    writer.start_file("a.yaml", SimpleFileOptions::default()).unwrap();
    writer.write_all(b"a: 1").unwrap();
    writer.start_file("big.bin", SimpleFileOptions::default()).unwrap();
    writer.write_all(&zeros).unwrap();
    let problem = refused(&writer.finish().unwrap().into_inner(), Reason::TooLarge);
    assert!(problem.contains("50 MiB"), "a zip may hold as much as a tar: {problem}");
}

#[test]
fn ten_thousand_entries_are_read_and_one_more_is_not() {
    let names: Vec<String> = (0..=limits::SOURCE_ENTRIES).map(|index| format!("{index}.txt")).collect();
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    refused(&files(&names), Reason::TooLarge);
    refused(&zipped(&names), Reason::TooLarge);
    names.pop();
    assert_eq!(everything(&files(&names)).unwrap(), []);
    assert_eq!(everything(&zipped(&names)).unwrap(), []);
}

#[test]
fn a_long_or_deep_name_is_refused() {
    let long = |length: usize| {
        let mut builder = Builder::new(Vec::new());
        let mut header = Header::new_gnu();
        header.set_size(0);
        let name = format!("{}/{}", "d/".repeat(3), "a".repeat(length));
        builder.append_data(&mut header, name, std::io::empty()).unwrap();
        gzip(&builder.into_inner().unwrap())
    };
    assert!(everything(&long(limits::ENTRY_NAME - 7)).is_ok());
    refused(&long(limits::ENTRY_NAME), Reason::TooLarge);
    refused(&long(100 * limits::ENTRY_NAME), Reason::TooLarge);
    refused(&files(&[&"a/".repeat(limits::ENTRY_DEPTH + 1)]), Reason::TooLarge);
    assert!(everything(&files(&[&"a/".repeat(limits::ENTRY_DEPTH)])).is_ok());
}

#[test]
fn an_archive_that_can_be_read_in_two_ways_is_refused() {
    refused(&files(&["a.yaml", "./a.yaml"]), Reason::ArchiveInvalid);
    let good = files(&["a.yaml"]);
    refused(&[good.as_slice(), b"garbage"].concat(), Reason::ArchiveInvalid);
    refused(&good[..good.len() - 9], Reason::ArchiveInvalid);
    refused(&good[..good.len() / 2], Reason::ArchiveInvalid);
    let mut builder = Builder::new(Vec::new());
    raw_entry(&mut builder, b"a.yaml", EntryType::Regular, b"a: 1");
    let tar = builder.into_inner().unwrap();
    refused(&gzip(&[tar.as_slice(), tar.as_slice()].concat()), Reason::ArchiveInvalid);
    refused(&gzip(&good), Reason::ArchiveInvalid);
    refused(&gzip(b"a: 1"), Reason::ArchiveInvalid);
    refused(&tar, Reason::ArchiveInvalid);
    let zip = zipped(&["a.yaml"]);
    refused(&[zip.as_slice(), b"garbage"].concat(), Reason::ArchiveInvalid);
    refused(&zip[..zip.len() - 1], Reason::ArchiveInvalid);
    refused(&[zip.as_slice(), zip.as_slice()].concat(), Reason::ArchiveInvalid);
}

#[test]
fn headers_that_disagree_about_a_size_refuse_the_archive() {
    let record = |key: &str, value: &str| {
        let body = format!(" {key}={value}\n");
        let length = body.len() + 2;
        assert!((10..100).contains(&length));
        format!("{length}{body}")
    };
    let with = |header: &str, kind: EntryType| {
        tarball(&[("x", kind, header.as_bytes()), ("a.yaml", EntryType::Regular, b"a: 1")])
    };
    refused(&with(&record("size", "99"), EntryType::XHeader), Reason::ArchiveInvalid);
    refused(&with(&record("size", "x9"), EntryType::XHeader), Reason::ArchiveInvalid);
    refused(&with(&record("path", "b.yaml"), EntryType::XGlobalHeader), Reason::ArchiveInvalid);
    refused(&with(&record("path", "../b.yaml"), EntryType::XHeader), Reason::ArchiveUnsafe);
    refused(&with(&record("GNU.sparse.major", "1"), EntryType::XHeader), Reason::ArchiveInvalid);
    refused(&with("garbage", EntryType::XHeader), Reason::ArchiveInvalid);
    refused(&with(&"x".repeat(70_000), EntryType::XHeader), Reason::TooLarge);
    refused(&with("", EntryType::GNUSparse), Reason::ArchiveInvalid);
    refused(
        &tarball(&[("x", EntryType::XHeader, record("path", "b.yaml").as_bytes())]),
        Reason::ArchiveInvalid,
    );
    let found = everything(&with(&record("path", "b.yaml"), EntryType::XHeader)).unwrap();
    assert_eq!(paths(&found), ["b.yaml"]);
    let found = everything(&with(&record("comment", "1234567890"), EntryType::XGlobalHeader)).unwrap();
    assert_eq!(paths(&found), ["a.yaml"], "as git archive writes it");
}

#[test]
fn what_must_be_rendered_is_refused_with_the_way_out() {
    for name in ["kustomization.yaml", "a/kustomization.yml", "a/Kustomization", "chart/Chart.yaml"] {
        let message = refused(&files(&["a.yaml", name]), Reason::SourceUnsupported);
        assert!(message.contains(name) && message.contains("render it in CI"), "{message}");
    }
    assert!(unpack(&files(&["a/b.yaml", "c/Chart.yaml"]), &selection(&["a"], 0)).is_ok());
}

#[test]
fn manifests_are_those_of_the_paths_in_order_without_hidden_ones() {
    let bytes = files(&[
        "top/deploy/b.yml",
        "top/deploy/a.yaml",
        "top/deploy/.git/x.yaml",
        "top/deploy/.hidden.yaml",
        "top/deploy/c.json",
        "top/deploy/notes.md",
        "top/deployment/d.yaml",
        "top/.github/e.yaml",
        "top",
        "README.yaml",
    ]);
    let found = |wanted: &[&str], strip| {
        unpack(&bytes, &selection(wanted, strip))
            .map(|found| paths(&found).join(" "))
            .map_err(|error| error.reason)
    };
    assert_eq!(found(&["deploy"], 1).unwrap(), "deploy/a.yaml deploy/b.yml deploy/c.json");
    assert_eq!(found(&["./top/deploy/"], 0).unwrap(), "top/deploy/a.yaml top/deploy/b.yml top/deploy/c.json");
    assert_eq!(found(&["deploy/a.yaml", "deploy/c.json"], 1).unwrap(), "deploy/a.yaml deploy/c.json");
    assert_eq!(found(&[".github"], 1).unwrap(), ".github/e.yaml", "a hidden directory that is named is read");
    assert_eq!(found(&["."], 1).unwrap(), "deploy/a.yaml deploy/b.yml deploy/c.json deployment/d.yaml");
    assert_eq!(found(&["deploy", "none"], 1), Err(Reason::PathNotFound));
    assert_eq!(found(&["deploy/notes.md"], 1), Err(Reason::PathNotFound));
    for wrong in ["/deploy", "../deploy", "a/../b"] {
        assert!(ManifestSelection::new(&[wrong.to_owned()], 0).is_err(), "{wrong}");
    }
}

#[test]
fn one_text_is_a_source_too() {
    let found = everything(b"apiVersion: v1\nkind: Namespace\n").unwrap();
    assert_eq!((paths(&found), found[0].text.len()), (vec![""], 31));
    let problem = unpack(b"a: 1", &selection(&["deploy"], 0)).unwrap_err();
    assert_eq!(problem.reason, Reason::PathNotFound);
    refused(b"\xff\xfea", Reason::ArchiveInvalid);
    refused(&vec![b'a'; limits::SOURCE_DOWNLOAD + 1], Reason::TooLarge);
    refused(&tarball(&[("a.yaml", EntryType::Regular, &files(&["b.yaml"]))]), Reason::ArchiveInvalid);
}

/// Bytes with some of them changed, left out or repeated.
fn damaged(mut bytes: Vec<u8>, changes: &[(prop::sample::Index, u8, u8)]) -> Vec<u8> {
    for (at, what, value) in changes {
        let at = at.index(bytes.len().max(1)).min(bytes.len().saturating_sub(1));
        match what % 3 {
            _ if bytes.is_empty() => {}
            0 => bytes[at] = *value,
            1 => drop(bytes.remove(at)),
            _ => bytes.insert(at, *value),
        }
    }
    bytes
}

proptest! {
    #[test]
    fn no_bytes_make_it_stumble(
        kind in 0..3_u8,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<u8>()), 0..8),
    ) {
        let names = ["a.yaml", "d/b.yaml", "c.txt"];
        let bytes = match kind {
            0 => damaged(zipped(&names), &changes),
            1 => damaged(files(&names), &changes),
            // Inside of the compression, so that the damage is not found by its checksum.
            _ => {
                let mut builder = Builder::new(Vec::new());
                for name in names {
                    raw_entry(&mut builder, name.as_bytes(), EntryType::Regular, b"a: 1");
                }
                gzip(&damaged(builder.into_inner().unwrap(), &changes))
            }
        };
        if let Ok(found) = everything(&bytes) {
            for manifest in found {
                prop_assert!(!manifest.path.starts_with('/') && !manifest.path.contains(".."), "{}", manifest.path);
            }
        }
    }

    #[test]
    fn honest_archives_are_read_as_they_are(names in prop::collection::btree_set("[a-z]{1,8}(/[a-z]{1,8}){0,3}\\.yaml", 1..20)) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for bytes in [files(&names), zipped(&names)] {
            let found = everything(&bytes).unwrap();
            prop_assert_eq!(paths(&found), names.clone());
        }
    }
}
