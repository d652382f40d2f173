import { expect, test } from 'bun:test'
import { resolve } from 'node:path'

const ROOT = resolve(import.meta.dir, '..')
const read = (file: string) => Bun.file(resolve(ROOT, file)).text()

/** The instructions of the Dockerfile, by stage, continued lines joined. */
async function stages(): Promise<string[][]> {
  const lines = (await read('Dockerfile'))
    .replaceAll('\\\n', ' ')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  return lines.reduce<string[][]>(
    (all, line) => {
      if (line.startsWith('FROM ')) all.push([])
      all.at(-1)?.push(line.replace(/\s+/g, ' '))
      return all
    },
    [[]],
  )
}

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

test('the context of the image lets through what its build copies, and nothing else', async () => {
  const [, build] = await stages()
  const copied = build?.flatMap((line) => (line.startsWith('COPY ') ? line.split(' ').slice(1, -1) : [])) ?? []
  const [first, ...allowed] = (await read('.dockerignore')).trim().split('\n')

  expect(first).toBe('*')
  expect(allowed.map((line) => line.replace(/^!/, '')).sort()).toEqual(copied.sort())
})
