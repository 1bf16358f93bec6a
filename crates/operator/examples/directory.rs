//! A customised controller: the provider is a directory, and a pod in traffic is a file in it.
//!
//! `<directory>/<namespace>/<service>/<pod>` holds the pod's address while it may have traffic. The directory is the
//! environment's `DIRECTORY`; flags are those of `linchpin consist enable`. docs/consist-tutorial.md explains it.

use std::{env, fs, io, path::PathBuf, process::ExitCode};

use linchpin_consist::{Adapter, Batch, Employment, Expected, Item, PodStatuses, Trouble};

/// A pod as the provider knows it: its name and its address.
type Entry = Item<PodStatuses<()>>;

struct Directory(PathBuf);

impl Directory {
    fn folder(&self, on: &Employment) -> PathBuf {
        self.0.join(on.namespace()).join(on.name())
    }

    fn write(&self, on: &Employment, items: &[Entry]) -> Result<Batch, Trouble> {
        for item in items {
            fs::write(self.folder(on).join(&item.name), &item.statuses.ip).map_err(trouble)?;
        }
        Ok(Batch::done(items))
    }
}

fn entry(name: &str, ip: String) -> Entry {
    Item::employee(name, PodStatuses { ip, lifecycle_ready: true, ..PodStatuses::default() })
}

// As `map_err` hands it over.
#[allow(clippy::needless_pass_by_value)]
fn trouble(error: io::Error) -> Trouble {
    Trouble(format!("the directory does not do it: {error}"))
}

/// What is not there is no trouble: it is nothing.
fn or_nothing<T: Default>(result: io::Result<T>) -> Result<T, Trouble> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        result => result.map_err(trouble),
    }
}

impl Adapter for Directory {
    type EmployerState = Item<()>;
    type EmployeeState = Entry;

    fn controller_name(&self) -> &'static str {
        "directory-controller"
    }

    async fn expected_employer(&self, on: &Employment) -> Result<Vec<Item<()>>, Trouble> {
        Ok(vec![Item::employer(on.name(), ())])
    }

    async fn current_employer(&self, on: &Employment) -> Result<Vec<Item<()>>, Trouble> {
        let there = self.folder(on).try_exists().map_err(trouble)?;
        Ok(there.then(|| Item::employer(on.name(), ())).into_iter().collect())
    }

    async fn create_employer(&self, on: &Employment, items: Vec<Item<()>>) -> Result<Batch, Trouble> {
        fs::create_dir_all(self.folder(on)).map_err(trouble)?;
        Ok(Batch::done(&items))
    }

    async fn delete_employer(&self, on: &Employment, items: Vec<Item<()>>) -> Result<Batch, Trouble> {
        match or_nothing(fs::remove_dir(self.folder(on))) {
            Ok(()) => Ok(Batch::done(&items)),
            Err(_) => Ok(Batch::pending(&items, "there are still pods in it")),
        }
    }

    async fn expected_employees(&self, on: &Employment) -> Result<Expected<Entry>, Trouble> {
        let pods = on.employees.iter().map(|pod| &pod.view).filter(|pod| pod.is_lifecycle_ready());
        Ok(pods.map(|pod| entry(&pod.name, pod.ip.clone())).collect::<Vec<_>>().into())
    }

    async fn current_employees(&self, on: &Employment) -> Result<Vec<Entry>, Trouble> {
        let mut entries = Vec::new();
        for file in or_nothing(fs::read_dir(self.folder(on)).map(Some))?.into_iter().flatten() {
            let file = file.map_err(trouble)?;
            let ip = fs::read_to_string(file.path()).map_err(trouble)?;
            entries.push(entry(&file.file_name().to_string_lossy(), ip));
        }
        Ok(entries)
    }

    async fn create_employees(&self, on: &Employment, items: Vec<Entry>) -> Result<Batch, Trouble> {
        self.write(on, &items)
    }

    async fn update_employees(&self, on: &Employment, items: Vec<Entry>) -> Result<Batch, Trouble> {
        self.write(on, &items)
    }

    async fn delete_employees(&self, on: &Employment, items: Vec<Entry>) -> Result<Batch, Trouble> {
        for item in &items {
            or_nothing(fs::remove_file(self.folder(on).join(&item.name)))?;
        }
        Ok(Batch::done(&items))
    }
}

fn main() -> ExitCode {
    let directory = env::var_os("DIRECTORY").unwrap_or_else(|| "traffic".into());
    linchpin_operator::consist::enable(Directory(directory.into()))
}
