# The image of the waiter: one static program. It copies and compiles nothing, as the operator's Dockerfile does: `make dist`
# puts the programs of this machine's architecture under dist/, a release those of every one.
FROM scratch
ARG TARGETARCH
COPY --chmod=0755 dist/linux-${TARGETARCH}/linchpin-wait /linchpin-wait
USER 65532:65532
ENTRYPOINT ["/linchpin-wait"]
