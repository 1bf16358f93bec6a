//! Packs the relocations of the static program: without it they are a thirtieth of it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // musl reads packed relocations since 1.2.4; a program for this machine's own libraries is linked as usual.
    if std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|environment| environment == "musl") {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
