// The first part of `bun start`: installs what running needs. It says nothing more than that, unless the installation fails.
import { existsSync } from 'node:fs'
import { engines } from '../package.json'

if (Bun.version !== engines.bun)
  console.error(
    `This is Bun ${Bun.version}. Plant Store is tested with Bun ${engines.bun} alone: if this fails, use that one.`,
  )
if (!existsSync('node_modules')) console.error('Installing the locked packages.')
// With `--silent` Bun would also keep quiet about a failure.
const install = Bun.spawnSync([process.execPath, 'install', '--production', '--frozen-lockfile'], { stdin: 'inherit' })
if (!install.success) process.stderr.write(Buffer.concat([install.stdout, install.stderr]))
process.exitCode = install.exitCode
