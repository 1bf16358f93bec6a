//! The paths a rendering came by, and which of them it read.
//!
//! Every field access passes here, so a path is a number: its parent's number and one segment. They are spelled out
//! once, at the end.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use super::path::DataPath;
use super::value::PathId;

/// How many paths are reported; of more, the places they are below count as read.
const MOST_READS: usize = 4_096;

/// One step down: a key of the data or of the template, or a position in a list.
#[derive(Clone, Copy)]
pub(crate) enum TrailSegment<'d> {
    Key(&'d str),
    Index(usize),
}

impl TrailSegment<'_> {
    /// What distinguishes it from its siblings. A key lives at one address while the rendering runs, which is cheaper
    /// to compare than its letters; the same key written at two places only gives two numbers to one path.
    fn identity(self) -> (bool, usize) {
        match self {
            Self::Key(key) => (false, key.as_ptr().addr()),
            Self::Index(index) => (true, index),
        }
    }
}

/// Mixes the few machine words of an identity: they are addresses and counters, not chosen by anyone.
#[derive(Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

type Known = HashMap<(PathId, (bool, usize)), PathId, BuildHasherDefault<Mixer>>;

/// The paths of one rendering.
pub(crate) struct Trail<'d> {
    paths: RefCell<Vec<(PathId, TrailSegment<'d>)>>,
    known: RefCell<Known>,
    reads: RefCell<Vec<PathId>>,
    shapes: RefCell<Vec<PathId>>,
}

impl<'d> Trail<'d> {
    pub(crate) fn new() -> Self {
        Self {
            // The root has number 0; its parent and segment are never looked at.
            paths: RefCell::new(vec![(PathId::NONE, TrailSegment::Index(0))]),
            known: RefCell::default(),
            reads: RefCell::default(),
            shapes: RefCell::default(),
        }
    }

    /// The number of the path one segment further down.
    pub(crate) fn path(&self, parent: PathId, segment: TrailSegment<'d>) -> PathId {
        if parent == PathId::NONE {
            return parent;
        }
        *self.known.borrow_mut().entry((parent, segment.identity())).or_insert_with(|| {
            let mut paths = self.paths.borrow_mut();
            paths.push((parent, segment));
            PathId(u32::try_from(paths.len() - 1).unwrap_or(u32::MAX))
        })
    }

    pub(crate) fn read(&self, path: PathId) {
        if path != PathId::NONE {
            self.reads.borrow_mut().push(path);
        }
    }

    pub(crate) fn read_shape(&self, path: PathId) {
        if path != PathId::NONE {
            self.shapes.borrow_mut().push(path);
        }
    }

    /// A path spelled out.
    pub(crate) fn spell(&self, mut path: PathId) -> DataPath {
        let paths = self.paths.borrow();
        let mut segments = Vec::new();
        while path != PathId::NONE && path != PathId::ROOT {
            let (parent, segment) = paths[path.0 as usize];
            segments.push(match segment {
                TrailSegment::Key(key) => key.to_owned(),
                TrailSegment::Index(index) => index.to_string(),
            });
            path = parent;
        }
        segments.reverse();
        DataPath::new(segments)
    }

    fn parent(&self, id: u32) -> u32 {
        let (parent, _) = self.paths.borrow()[id as usize];
        if parent == PathId::NONE { PathId::ROOT.0 } else { parent.0 }
    }

    /// What was read, and of which containers only the shape.
    pub(crate) fn all(&self) -> (BTreeSet<DataPath>, BTreeSet<DataPath>) {
        let spelled = |ids: &RefCell<Vec<PathId>>| {
            let mut ids: Vec<u32> = ids.borrow().iter().map(|id| id.0).collect();
            ids.sort_unstable();
            ids.dedup();
            while ids.len() > MOST_READS {
                ids = ids.into_iter().map(|id| self.parent(id)).collect();
                ids.sort_unstable();
                ids.dedup();
            }
            ids.into_iter().map(|id| self.spell(PathId(id))).collect::<BTreeSet<_>>()
        };
        (spelled(&self.reads), spelled(&self.shapes))
    }
}
