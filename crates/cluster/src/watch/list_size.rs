//! How long a list may be. Pure: a server that always has one more page, or one more object, is not believed.

use linchpin_words::limits;

/// What was read of one list so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ListSize {
    /// Pages.
    pub(super) pages: usize,
    /// Their bytes.
    pub(super) bytes: usize,
    /// Objects in them that something is kept of.
    pub(super) objects: usize,
}

impl ListSize {
    /// Why no more of it is read; none if it is. The last page makes nothing too long that was not before: `more` says
    /// whether another one follows.
    pub(super) fn too_long(&self, more: bool) -> Option<String> {
        let over = self.bytes > limits::LIST_BYTES
            || self.objects > limits::LIST_OBJECTS
            || more && self.pages >= limits::LIST_PAGES;
        over.then(|| {
            let Self { pages, bytes, objects } = self;
            format!("the list is too long: {objects} objects and {bytes} bytes in {pages} pages")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_may_be_as_long_as_its_limits_and_no_longer() {
        let size = |pages, bytes, objects| ListSize { pages, bytes, objects };
        let fits = [
            size(limits::LIST_PAGES - 1, 1, 1),
            size(1, limits::LIST_BYTES, 1),
            size(1, 1, limits::LIST_OBJECTS),
        ];
        for size in fits {
            assert_eq!(size.too_long(true), None, "{size:?}");
        }
        assert_eq!(size(limits::LIST_PAGES, 1, 1).too_long(false), None, "the last page is the last allowed");
        let too_long = [
            size(limits::LIST_PAGES, 1, 1),
            size(limits::LIST_PAGES * 100, 1, 1),
            size(1, limits::LIST_BYTES + 1, 1),
            size(1, limits::LIST_BYTES * 100, 1),
            size(1, 1, limits::LIST_OBJECTS + 1),
            size(1, 1, limits::LIST_OBJECTS * 100),
        ];
        for size in too_long {
            assert!(size.too_long(true).is_some(), "{size:?}");
        }
        assert!(size(1, 1, limits::LIST_OBJECTS + 1).too_long(false).is_some(), "nor is its last page kept");
    }
}
