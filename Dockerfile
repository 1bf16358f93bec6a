# The image of the operator. It copies and compiles nothing: the file in it is the file in the release's archive, built by
# native runners of each architecture (`make dist`). No shell, no package manager, no CA bundle: an API server's
# certificate is in the kubeconfig or the pod's own, and probes have their roots compiled in.
FROM scratch
ARG TARGETARCH
COPY --chmod=0755 dist/linux-${TARGETARCH}/linchpin /linchpin
USER 65532:65532
ENTRYPOINT ["/linchpin"]
