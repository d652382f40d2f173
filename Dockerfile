# The base images are arguments, so that mirrors and stand-ins can be used.
ARG BUILD_IMAGE=oven/bun:1.4.5-debian
ARG FINAL_IMAGE=gcr.io/distroless/base-debian12:nonroot

FROM ${BUILD_IMAGE} AS build
WORKDIR /build
COPY package.json bun.lock bunfig.toml ./
RUN bun install --frozen-lockfile --production
COPY tsconfig.json ./
COPY src ./src
RUN bun run build
# A volume on a folder that is missing would belong to root, and the first start would fail.
RUN mkdir /data && chown 65532:65532 /data

FROM ${FINAL_IMAGE}
LABEL org.opencontainers.image.title="Plant Store" \
      org.opencontainers.image.description="A small HTTP/JSON service that stores plants" \
      org.opencontainers.image.licenses="MIT"
COPY --from=build /build/dist/plantstore /usr/local/bin/plantstore
COPY --from=build --chown=65532:65532 /data /data
USER 65532:65532
VOLUME /data
ENV PLANTSTORE_DATABASE=/data/plantstore.db \
    PLANTSTORE_LISTEN=0.0.0.0:3000
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s CMD ["/usr/local/bin/plantstore", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/plantstore"]
CMD ["serve"]
