import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { stages } from './dockerfile.ts'
import { PROJECT } from './run.ts'

test('the final image has the executable, a /data of its user, and nothing else', async () => {
  const [args, build, final] = await stages()

  expect(args).toEqual([
    expect.stringMatching(/^ARG BUILD_IMAGE=oven\/bun:1\.4\.5/),
    'ARG FINAL_IMAGE=gcr.io/distroless/base-debian12:nonroot',
  ])
  expect(build).toContain('RUN bun install --frozen-lockfile --production')
  expect(build).toContain('RUN mkdir /data && chown 65532:65532 /data')
  expect(final?.filter((line) => !line.startsWith('LABEL '))).toEqual([
    expect.stringMatching(/^FROM \$\{FINAL_IMAGE\}$/),
    'COPY --from=build /build/dist/plantstore /usr/local/bin/plantstore',
    'COPY --from=build --chown=65532:65532 /data /data',
    'USER 65532:65532',
    'VOLUME /data',
    'ENV PLANTSTORE_DATABASE=/data/plantstore.db PLANTSTORE_LISTEN=0.0.0.0:3000',
    'EXPOSE 3000',
    expect.stringMatching(/^HEALTHCHECK .* CMD \["\/usr\/local\/bin\/plantstore", "healthcheck"\]$/),
    'ENTRYPOINT ["/usr/local/bin/plantstore"]',
    'CMD ["serve"]',
  ])
  expect(final?.filter((line) => line.startsWith('LABEL ')).join()).toContain('org.opencontainers.image.licenses="MIT"')
})

test('.dockerignore lets through the files that the Dockerfile copies, and nothing else', async () => {
  const [, build] = await stages()
  const copied = build?.flatMap((line) => (line.startsWith('COPY ') ? line.split(' ').slice(1, -1) : [])) ?? []
  const [first, ...allowed] = (await Bun.file(join(PROJECT, '.dockerignore')).text()).trim().split('\n')

  expect(first).toBe('*')
  expect(allowed.map((line) => line.replace(/^!/, '')).sort()).toEqual(copied.sort())
})
