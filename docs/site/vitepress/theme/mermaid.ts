import { useData } from 'vitepress'
import { defineComponent, h, onMounted, ref, useId, watch } from 'vue'

/** A diagram, drawn in the colours of the page. Without JavaScript, its source. */
export const Mermaid = defineComponent({
  props: { code: { type: String, required: true } },
  setup(props) {
    const { isDark } = useData()
    const id = `diagram-${useId()}`
    const code = decodeURIComponent(props.code)
    const svg = ref('')
    const draw = async () => {
      const { default: mermaid } = await import('mermaid')
      // Its own dark theme has too little contrast between the label of an arrow and what is behind.
      const theme = isDark.value
        ? ({ theme: 'dark', themeVariables: { edgeLabelBackground: '#222' } } as const)
        : ({ theme: 'neutral' } as const)
      mermaid.initialize({ startOnLoad: false, securityLevel: 'strict', ...theme })
      svg.value = (await mermaid.render(id, code)).svg
    }
    onMounted(draw)
    watch(isDark, draw)
    return () =>
      svg.value === '' ? h('pre', { class: 'diagram' }, code) : h('div', { class: 'diagram', innerHTML: svg.value })
  },
})
