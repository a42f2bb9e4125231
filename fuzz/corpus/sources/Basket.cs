namespace Shop
{
    public abstract class Basket
    {
        protected abstract bool IsOpen { get; }

        protected void EnsureOpen()
        {
            if (!IsOpen)
            {
                throw new System.InvalidOperationException("closed");
            }
        }
    }
}
