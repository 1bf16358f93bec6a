# The image of the waiter: one static program. It copies and compiles nothing, as the operator's Dockerfile does: `make dist`
# and `make wait` put the programs of each architecture under dist/.
FROM scratch
ARG TARGETARCH
COPY --chmod=0755 dist/linux-${TARGETARCH}/linchpin-wait /linchpin-wait
USER 65532:65532
ENTRYPOINT ["/linchpin-wait"]
