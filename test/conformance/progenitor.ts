import { appendFileSync, cpSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { readPage } from '../support/docs.ts'
import { program } from '../support/requirement.ts'
import { HERE, runWell, SCRATCH } from './tools.ts'

export const RUST = ['cargo', 'jq'].map(program)

/**
 * Builds the program in the section on Rust of docs/how-to/client.md, as the section says. Cargo.lock fixes all versions. Returns
 * the path of the program.
 */
export async function buildRust(document: string): Promise<string> {
  const [, section = ''] = (await readPage('docs/how-to/client.md')).split('\n## Rust\n')
  const block = (language: string) => section.split(`\n\`\`\`${language}\n`)[1]?.split('```')[0] ?? ''
  const folder = join(SCRATCH, 'progenitor')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
  cpSync(document, join(folder, 'openapi.json'))
  await runWell(['sh', '-ec', block('sh')], { cwd: folder })
  const garden = join(folder, 'garden')
  appendFileSync(join(garden, 'Cargo.toml'), block('toml'))
  await Bun.write(join(garden, 'src/main.rs'), block('rust'))
  cpSync(join(HERE, 'progenitor/Cargo.lock'), join(garden, 'Cargo.lock'))
  const env = { CARGO_TARGET_DIR: join(SCRATCH, 'progenitor-target'), CARGO_PROFILE_DEV_DEBUG: 'false' }
  await runWell(['cargo', 'build', '--locked', '--quiet'], { cwd: garden, env })
  return join(env.CARGO_TARGET_DIR, 'debug/garden')
}
