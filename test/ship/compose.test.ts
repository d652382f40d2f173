import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { pathOfPage, readContrib, yamlInContrib } from '../support/docs.ts'
import { makeFolder } from '../support/folder.ts'
import { lacks, program } from '../support/requirement.ts'
import { runIn } from './run.ts'

/** The default of `--drain`. Docker must wait longer for a server to end. */
const DRAIN_DEFAULT_S = 8

/** The seconds of a duration like `8s`. */
const secondsOf = (duration: string | undefined): number => Number(duration?.replace(/s$/, ''))

const COMPOSE = 'contrib/compose.yaml'
const compose = await yamlInContrib(COMPOSE)

describe('the Compose file', () => {
  test.skipIf(lacks(program('docker-compose')))('is valid for docker-compose, which refuses a wrong one', async () => {
    using folder = makeFolder()
    const config = (file: string) => runIn(['docker-compose', '--file', file, 'config', '--quiet'])
    const wrongFile = join(folder.path, 'compose.yaml')
    await Bun.write(wrongFile, (await readContrib(COMPOSE)).replace('read_only', 'read_onely'))
    const wrong = await config(wrongFile)

    expect(await config(pathOfPage(COMPOSE))).toEqual({ stdout: '', stderr: '', exitCode: 0 })
    expect({ ...wrong, stderr: wrong.stderr.includes('read_onely') }).toEqual({ stdout: '', stderr: true, exitCode: 1 })
  })

  test('keeps only /data, drops all rights, and waits longer than the server takes to end', () => {
    const { volumes, ports, read_only, cap_drop, security_opt, stop_grace_period } = compose.services.plantstore

    expect([volumes, Object.keys(compose.volumes)]).toEqual([['plants:/data'], ['plants']])
    expect(ports).toEqual(['127.0.0.1:3000:3000'])
    expect([read_only, cap_drop, security_opt]).toEqual([true, ['ALL'], ['no-new-privileges:true']])
    expect(secondsOf(stop_grace_period)).toBeGreaterThan(DRAIN_DEFAULT_S)
  })
})
