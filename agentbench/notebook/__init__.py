"""The notebook layer: graphs, panels, steppers, forms, frames and plots in cells.

Every name is imported at its first use, so that drawing a graph does not load pandas, nor a frame widgets.
"""

from agentbench._lazy import Door

_door = Door(
    globals(),
    """
    agentbench.checkpoints.editing: Edit
    agentbench.workflows.draw.python_code: to_python
    stepping.model.break_places: Breakpoint
    cards.conversation.views: Transcript transcript
    cells.api_key: ApiKey
    cells.executor_cell: Definition define_executor
    cells.workbench: Workbench older_code workbench
    cells.workflow_cell: define_workflow
    chat_panel.chat: Chat chat
    commands.doctor: doctor
    commands.magics: load_ipython_extension unload_ipython_extension
    forms.form: Form FormState form request_form
    forms.inbox: Inbox inbox
    frames.differences: diff_frame
    frames.frames: Frames checkpoints_frame events_frame lineage_frame messages_frame requests_frame runs_frame
        state_frame timeline_frame usage_frame
    graph.view: GraphView draw
    graph_panel.live: GraphPanel
    graph_panel.panel: make_graph_panel
    look.prose: Prose prose
    plots.compare: ComparePlot compare
    plots.diff: DiffPlot diff
    plots.lineage: lineage
    plots.plot: Plot
    plots.timeline: timeline
    plots.usage: usage
    progress_bar.progress: Progress progress
    run_list.run_list: PastRun RunList runs
    runtime.one_widget: as_anywidget
    agentbench.messages.prices: Price
    runtime.settings: Settings configure
    runtime.waiting: nest_state run_sync submit wait
    stepping.model.messages: StepperStatus
    stepping.start: stepper
    stepping.stepper: Stepper
    """,
)
__all__ = _door.names
__getattr__, __dir__ = _door.load, _door.listing
