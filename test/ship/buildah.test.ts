import { describe, expect } from 'bun:test'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { testLong } from '../fault/rounds.ts'
import { lacks } from '../support/requirement.ts'
import { BUILDAH, buildDockerfile } from './buildah.ts'
import { CONTAINERS, startContainer } from './container.ts'
import { imageConfiguration } from './dockerfile.ts'
import { PLANT_ROUND, plantRound } from './plant-round.ts'

const BUILD_TIMEOUT_MS = 300_000

describe.skipIf(lacks(CONTAINERS, BUILDAH))('the Dockerfile, built by buildah on stand-ins', () => {
  testLong(
    'makes an image with a /data of its user, and the image serves',
    async () => {
      const described = await imageConfiguration()
      await using image = await buildDockerfile()
      const { User, Entrypoint, Cmd, Env, Volumes, ExposedPorts, Healthcheck } = image.configuration
      const { uid, gid, mode } = statSync(join(image.root, 'data'))
      const [, ...healthcheck] = Healthcheck.Test
      await using container = await startContainer({
        root: image.root,
        user: Number(User.split(':')[0]),
        env: Env,
        args: [...Entrypoint, ...Cmd],
        dataMode: mode & 0o777,
      })
      await container.waitFor(healthcheck)
      const answers = await plantRound(container)
      const { exitCode, stderr } = await container.end()

      expect({ uid, gid, mode: mode & 0o777, files: readdirSync(join(image.root, 'data')) }).toEqual({
        uid: 65532,
        gid: 65532,
        mode: 0o755,
        files: [],
      })
      expect({ User, Volumes: Object.keys(Volumes), ExposedPorts: Object.keys(ExposedPorts) }).toEqual({
        User: '65532:65532',
        Volumes: ['/data'],
        ExposedPorts: ['3000/tcp'],
      })
      expect({ args: [...Entrypoint, ...Cmd], healthcheck }).toEqual({
        args: described.args,
        healthcheck: described.healthcheck,
      })
      expect(Env).toEqual(expect.arrayContaining(described.env))
      expect(readdirSync(join(image.root, 'usr/local/bin'))).toEqual(['plantstore'])
      expect(answers).toEqual(PLANT_ROUND)
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    },
    BUILD_TIMEOUT_MS,
  )
})
