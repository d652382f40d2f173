import { join } from 'node:path'
import { makeFolder } from '../support/folder.ts'
import { advisories } from './audit-advisories.ts'
import {
  ALLOWED_IN_RUNTIME,
  ALLOWED_INSIDE,
  ALLOWED_TO_DEVELOP,
  installedManifests,
  licenseProblems,
} from './audit-licenses.ts'
import { lockProblems } from './audit-lock.ts'
import { billProblems } from './audit-sbom.ts'
import { partsInside } from './bundled-packages.ts'
import { PROJECT, runWell } from './run.ts'
import { runtime } from './runtime.ts'
import { sbom } from './sbom.ts'

/** `bun run audit`: prints all problems of the dependencies, and exits with 1 if there are any. */
async function audit(): Promise<void> {
  report('lock file', await lockProblems(PROJECT))
  const parts = await partsInside()
  const bun = await runtime()
  const installed = await installedManifests(PROJECT)
  report(`licences of Bun and ${parts.length} bundled packages, and of ${installed.length} installed packages`, [
    ...licenseProblems(
      parts.map(({ manifest }) => manifest),
      ALLOWED_INSIDE,
    ),
    ...licenseProblems(
      [{ name: 'bun', version: bun.version, license: bun.licenses.join(' AND ') }],
      ALLOWED_IN_RUNTIME,
    ),
    ...licenseProblems(installed, ALLOWED_TO_DEVELOP),
  ])
  using folder = makeFolder()
  const executable = join(folder.path, 'plantstore')
  await runWell(['bun', 'run', 'compile', '--outfile', executable])
  report('bill of materials', await billProblems(await sbom(parts, 'audited', new Date(0)), executable))
  const { unreachable, problems } = await advisories()
  if (unreachable === undefined) report('advisories', problems)
  else console.log(`advisories: not looked for, because the registry could not be asked: ${unreachable}`)
}

function report(title: string, problems: readonly string[]): void {
  console.log(`${title}: ${problems.length === 0 ? 'nothing wrong' : ''}`.trimEnd())
  for (const problem of problems) console.log(`  ${problem}`)
  if (problems.length > 0) process.exitCode = 1
}

await audit()
