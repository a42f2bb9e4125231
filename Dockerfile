# syntax=docker/dockerfile:1
# The static program in an image that has nothing else but certificates. Runs as a user; the cache is a volume.
#
#   docker build -t repoformer .
#   docker run --rm repoformer                  # the demonstration
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" -v repoformer:/cache repoformer run --tasks tasks.jsonl …

FROM rust:1.95-bookworm AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends musl-tools \
 && rm -rf /var/lib/apt/lists/* \
 && rustup target add "$(uname -m)-unknown-linux-musl"
WORKDIR /source
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/source/target \
    target=$(uname -m)-unknown-linux-musl \
 && cargo build --locked --profile dist --features serve --target "$target" \
 && install -D -s "target/$target/dist/repoformer" /image/usr/local/bin/repoformer \
 && install -D -m 644 /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ca-certificates.crt \
 && install -d -m 1777 /image/cache /image/tmp /image/work

FROM scratch
COPY --from=build /image /
# Any user may write to the cache: `--user` chooses who owns what is written to /work.
ENV REPOFORMER_CACHE_DIR=/cache
VOLUME /cache
WORKDIR /work
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/repoformer"]
CMD ["run"]
