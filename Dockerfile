# syntax=docker/dockerfile:1
FROM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o /promptspool ./cmd/promptspool \
 && mkdir /data && chmod 0700 /data

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /promptspool /promptspool
COPY --from=build --chown=65532:65532 /data /data
USER 65532:65532
VOLUME /data
ENV PROMPTSPOOL_DATA=/data
ENTRYPOINT ["/promptspool"]
CMD ["version"]
