import { expect, test } from 'bun:test'
import { yamlInContrib } from '../support/docs.ts'
import { lacks, program } from '../support/requirement.ts'
import { runIn } from './run.ts'

/** The default of `--drain`. Docker must wait longer for a server to end. */
const DRAIN_DEFAULT_S = 8

const COMPOSE = 'contrib/compose.yaml'

test.skipIf(lacks(program('docker-compose')))('docker-compose takes the Compose file', async () => {
  const config = await runIn(['docker-compose', '--file', COMPOSE, 'config', '--quiet'])

  expect(config).toEqual({ stdout: '', stderr: '', exitCode: 0 })
})

test('the Compose file waits longer than the server takes to end', async () => {
  const { stop_grace_period } = (await yamlInContrib(COMPOSE)).services.plantstore

  expect(Number.parseFloat(stop_grace_period)).toBeGreaterThan(DRAIN_DEFAULT_S)
})
