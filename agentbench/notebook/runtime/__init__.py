"""Process-wide services of the notebook layer: settings, prices, the kernel, waiting, pacing of widgets."""
