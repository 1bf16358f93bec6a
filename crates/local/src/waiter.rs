//! The waiter's image: `linchpin-wait` as a real node can run it.
//!
//! An image from scratch has no libraries, so only a static program is of use there; `make wait` builds one. It is looked for
//! beside the running program and where `make wait` puts it. Called when a node starts, and by tests that need it.

use std::env;

use crate::{Image, is_static};

const PROGRAM: &str = "linchpin-wait";
/// The name under which pods find it.
const IMAGE: &str = "localhost/linchpin-wait:1";

/// The waiter's image, where a static waiter is found.
pub fn waiter_image() -> Option<Image> {
    let program = env::current_exe().ok()?;
    let built = format!("{}-unknown-linux-musl/wait/{PROGRAM}", env::consts::ARCH);
    let directories = program.ancestors().skip(1).take(3);
    let candidates = directories.flat_map(|dir| [dir.join(PROGRAM), dir.join(&built)]);
    candidates.into_iter().find(|path| is_static(path)).map(|path| Image::of(IMAGE, &path))
}
