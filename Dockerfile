# syntax=docker/dockerfile:1
# For both processors, and with what `version` shows of a release:
#   docker buildx build --platform linux/amd64,linux/arm64 --build-arg VERSION=x \
#     --build-arg COMMIT=$(git rev-parse HEAD) --build-arg DATE=$(git log -1 --format=%cI) .
#
# The bases are pinned by the digest of the image for all platforms, which
# `docker buildx imagetools inspect NAME:TAG` prints.
FROM --platform=$BUILDPLATFORM golang:1.26.8-bookworm@sha256:a688600ca24f8a4d3ca77f95b0dd40704a9fc787c826660eb7ba0b641b8b175d AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG TARGETOS TARGETARCH VERSION COMMIT DATE
ENV GOOS=$TARGETOS GOARCH=$TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -trimpath -tags urfave_cli_no_docs,nethttpomithttp2 -ldflags "-s -w${VERSION:+ -X main.version=$VERSION -X main.commit=$COMMIT -X main.date=$DATE}" -o /promptspool ./cmd/promptspool \
 && mkdir /data && chmod 0700 /data

FROM gcr.io/distroless/static-debian12:nonroot@sha256:afa5c872c891853ca7fcf1f12c3edb23f7eeef36189728842dd51042ff57f7ab
COPY --from=build /promptspool /promptspool
COPY --from=build --chown=65532:65532 /data /data
USER 65532:65532
VOLUME /data
ENV PROMPTSPOOL_DATA=/data
# The API and the operations listener of a sidecar, then of a server. Both listen on loopback by default.
EXPOSE 8787 9787 8788 9788
ENTRYPOINT ["/promptspool"]
CMD ["version"]
ARG VERSION COMMIT DATE
LABEL org.opencontainers.image.title=promptspool \
      org.opencontainers.image.description="A durable record of every call to a language model" \
      org.opencontainers.image.licenses=Apache-2.0 \
      org.opencontainers.image.version=$VERSION \
      org.opencontainers.image.revision=$COMMIT \
      org.opencontainers.image.created=$DATE
