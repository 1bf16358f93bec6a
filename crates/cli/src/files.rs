//! Files of manifests as `-f` names them, as kubectl takes them: files, directories, `-` for standard input.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

/// The text of each file, with what it is called. Of a directory its manifests are read, sorted; what is in directories
/// below it, but for hidden ones, only with `recursive`.
pub(crate) fn read(given: &[PathBuf], recursive: bool) -> Result<Vec<(String, String)>> {
    let mut texts = Vec::new();
    for path in given {
        if path == Path::new("-") {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).context("reading standard input")?;
            texts.push(("standard input".to_owned(), text));
        } else if path.to_str().is_some_and(|path| path.contains("://")) {
            bail!("{}: URLs are not read; fetch it, and give it with -f -", path.display());
        } else if path.is_dir() {
            directory(path, recursive, &mut texts)?;
        } else {
            file(path, &mut texts)?;
        }
    }
    Ok(texts)
}

fn directory(path: &Path, recursive: bool, texts: &mut Vec<(String, String)>) -> Result<()> {
    let reading = || format!("reading {}", path.display());
    let entries = fs::read_dir(path).with_context(reading)?;
    let entries: io::Result<Vec<PathBuf>> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut entries = entries.with_context(reading)?;
    entries.sort();
    for entry in entries {
        let is_hidden = entry.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        let is_manifest = entry.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json");
        if entry.is_dir() {
            if recursive && !is_hidden {
                directory(&entry, recursive, texts)?;
            }
        } else if is_manifest {
            file(&entry, texts)?;
        }
    }
    Ok(())
}

fn file(path: &Path, texts: &mut Vec<(String, String)>) -> Result<()> {
    let label = path.display().to_string();
    let text = fs::read_to_string(path).with_context(|| format!("reading {label}"))?;
    texts.push((label, text));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_directory_its_manifests_are_read_sorted_and_what_is_below_only_if_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.yaml", "a.yml", "c.json", "d.txt", "e/f.yaml", ".g/h.yaml"] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        let texts = |recursive| -> Vec<String> {
            let found = read(&[folder.path().to_owned()], recursive).unwrap();
            found.into_iter().map(|(_, text)| text).collect()
        };
        assert_eq!(texts(false), ["a.yml", "b.yaml", "c.json"]);
        assert_eq!(texts(true), ["a.yml", "b.yaml", "c.json", "e/f.yaml"]);
        let missing = read(&[folder.path().join("none.yaml")], false).unwrap_err();
        assert!(format!("{missing:#}").contains("none.yaml: No such file"), "{missing:#}");
        let url = read(&["https://example.com/a.yaml".into()], false).unwrap_err().to_string();
        assert_eq!(url, "https://example.com/a.yaml: URLs are not read; fetch it, and give it with -f -");
    }
}
