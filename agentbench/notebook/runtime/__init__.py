"""What the process holds for the notebook layer: settings, prices, the kernel, waiting, the pace of widgets."""
