# The image of the waiter: one static program, which `make wait` builds. Build it with the directory of that program as context:
#   docker build -f packaging/linchpin-wait.Dockerfile target/x86_64-unknown-linux-musl/wait
FROM scratch
COPY linchpin-wait /linchpin-wait
USER 65532:65532
ENTRYPOINT ["/linchpin-wait"]
