# syntax=docker/dockerfile:1
# For both processors, and with what `version` shows of a release:
#   docker buildx build --platform linux/amd64,linux/arm64 --build-arg VERSION=x \
#     --build-arg COMMIT=$(git rev-parse HEAD) --build-arg DATE=$(git log -1 --format=%cI) .
FROM --platform=$BUILDPLATFORM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH VERSION COMMIT DATE
ENV GOOS=$TARGETOS GOARCH=$TARGETARCH
RUN CGO_ENABLED=0 go build -trimpath -tags urfave_cli_no_docs,nethttpomithttp2 -ldflags "-s -w${VERSION:+ -X main.version=$VERSION -X main.commit=$COMMIT -X main.date=$DATE}" -o /promptspool ./cmd/promptspool \
 && mkdir /data && chmod 0700 /data

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /promptspool /promptspool
COPY --from=build --chown=65532:65532 /data /data
USER 65532:65532
VOLUME /data
ENV PROMPTSPOOL_DATA=/data
ENTRYPOINT ["/promptspool"]
CMD ["version"]
