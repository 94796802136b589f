"""Models of pytensor-ml as graphs to export."""
