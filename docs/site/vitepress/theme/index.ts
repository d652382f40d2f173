import type { Theme } from 'vitepress'
import DefaultTheme from 'vitepress/theme-without-fonts'
import { Mermaid } from './mermaid.ts'
import './style.css'

export default {
  extends: DefaultTheme,
  enhanceApp: ({ app }) => {
    app.component('Mermaid', Mermaid)
  },
} satisfies Theme
